"""Worked answers to three-number problems, for the supervised warm-up of a small policy.

A careful answer works backwards from the target: it sets one number aside, writes what the other two would have to
make and the nearest that they do make, says ``no`` while these differ, and stops at the first ``yes``. A hasty one
answers at once with some expression over the three numbers. A policy that has seen both is right about as often as it
is careful, which leaves reinforcement learning something to find.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from evenkeel.rewards.generators.countdown import CountdownProblem

_LARGEST_NEED = 99  # beyond it the arithmetic is not worth a small policy's memory


@dataclass(frozen=True)
class Attempt:
    """``line`` says what is ``needed`` of the other two numbers; ``answer`` holds ``{}`` where they stand."""

    line: str
    needed: int
    answer: str
    others: tuple[int, int]


def demonstration(problem: CountdownProblem, rng: random.Random, *, careful: bool) -> str | None:
    """A completion for ``problem``, its words separated by single spaces.

    A careful one is right; ``None`` where working backwards over positive integers below 100 finds no solution. A
    hasty one has no thoughts and is right only by luck. Raises ``ValueError`` for other than three numbers.
    """
    if len(problem.numbers) != 3:
        raise ValueError(
            f"a problem of {len(problem.numbers)} numbers: setting one aside must leave a pair. "
            "Generate the problems with num_numbers=3."
        )
    if not careful:
        return f"<think> </think> <answer> {_some_expression(problem, rng)} </answer>"
    attempts = list(attempts_at(problem))
    rng.shuffle(attempts)
    thoughts = []
    for attempt in attempts:
        made, value = nearest(*attempt.others, attempt.needed)
        thoughts.append(f"{attempt.line} {made} = {value} {'yes' if value == attempt.needed else 'no'}")
        if value == attempt.needed:
            answer = attempt.answer.format(f"( {made} )")
            return f"<think> {' '.join(thoughts)} </think> <answer> {answer} </answer>"
    return None


def _some_expression(problem: CountdownProblem, rng: random.Random) -> str:
    first, second, third = rng.sample(problem.numbers, 3)
    inner, outer = rng.choices("+-*/", k=2)
    return f"( {first} {inner} {second} ) {outer} {third}"


def attempts_at(problem: CountdownProblem) -> Iterator[Attempt]:
    """Every way to set one number aside and do the last operation with it, each once."""
    target = problem.target
    for aside in sorted(set(problem.numbers)):
        left = list(problem.numbers)
        left.remove(aside)
        candidates = [
            (f"{target} - {aside}", target - aside, f"{{}} + {aside}"),
            (f"{target} + {aside}", target + aside, f"{{}} - {aside}"),
            (f"{aside} - {target}", aside - target, f"{aside} - {{}}"),
            (f"{target} * {aside}", target * aside, f"{{}} / {aside}"),
        ]
        if target % aside == 0:
            candidates.append((f"{target} / {aside}", target // aside, f"{{}} * {aside}"))
        if aside % target == 0:
            candidates.append((f"{aside} / {target}", aside // target, f"{aside} / {{}}"))
        for sides, needed, answer in candidates:
            if 1 <= needed <= _LARGEST_NEED:
                yield Attempt(f"{sides} = {needed}", needed, answer, (left[0], left[1]))


def nearest(first: int, second: int, needed: int) -> tuple[str, int]:
    """The operation on two positive integers that comes nearest to ``needed`` with a whole result, and the result."""
    small, large = sorted((first, second))
    results = [
        (f"{small} + {large}", small + large),
        (f"{large} - {small}", large - small),
        (f"{small} * {large}", small * large),
    ]
    if large % small == 0:
        results.append((f"{large} / {small}", large // small))
    return min(results, key=lambda result: abs(result[1] - needed))
