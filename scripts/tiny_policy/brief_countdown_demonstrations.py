"""Brief answers to three-number problems, for policies that a laptop trains within a minute.

A line of thought sets one number aside and says what the other two would have to make: ``36 - 5 = 31``. The answer then
has to find how they make it. In `one_line` there is one such line, so that all completions have the same length; in
`several_lines` there are some, each scored ``yes`` or ``no``, so that they differ in it.
"""

import random

from rapidfuzz.distance import Levenshtein

from evenkeel.rewards.generators.countdown import CountdownProblem
from evenkeel.trainer.algorithms.revisions import RevisionOptions, filled
from scripts.tiny_policy.countdown_demonstrations import Attempt, attempts_at, nearest

_MOST_FAILURES = 3


def one_line(problem: CountdownProblem, rng: random.Random, *, careful: bool) -> str | None:
    """One line and the answer that comes nearest to it, of 17 tokens with the end of the turn.

    A careful one is right, ``None`` where none is; a hasty one sets any number aside, and is right by luck.
    """
    solving, failing = _shuffled(problem, rng)
    of_any = solving if careful else [*solving, *failing]
    return _completion([], rng.choice(of_any), "") if of_any else None


def revised_line(problem: CountdownProblem, rng: random.Random) -> tuple[str, str] | None:
    """The default revision prompt with a wrong answer of one line and a right sibling, and the right answer that takes
    the fewest changes to the wrong one; ``None`` where there is no wrong or no right answer."""
    solving, failing = _shuffled(problem, rng)
    if not solving or not failing:
        return None
    wrong, *right = [_completion([], each, "") for each in (failing[0], *solving)]
    shown = filled(RevisionOptions().template, prompt=problem.question, answer=wrong, reference=right[0])
    return shown, min(right, key=lambda each: Levenshtein.distance(wrong.split(), each.split()))


def several_lines(problem: CountdownProblem, rng: random.Random, *, careful: bool) -> str | None:
    """Up to three lines that fail, a last one, and the answer that comes nearest to it.

    A careful one ends with a line that solves the problem, ``None`` where none does. A hasty one ends with any line,
    not scored, after no more failures than there are.
    """
    solving, failing = _shuffled(problem, rng)
    failures = failing[: rng.randint(0, _MOST_FAILURES)]
    last = solving if careful else [*solving, *failing[len(failures) :]]
    return _completion(failures, rng.choice(last), " yes" if careful else "") if last else None


def _shuffled(problem: CountdownProblem, rng: random.Random) -> tuple[list[Attempt], list[Attempt]]:
    """The attempts that solve the problem and those that do not, in random order."""
    attempts = list(attempts_at(problem))
    rng.shuffle(attempts)
    solving = [attempt for attempt in attempts if nearest(*attempt.others, attempt.needed)[1] == attempt.needed]
    return solving, [attempt for attempt in attempts if attempt not in solving]


def _completion(failures: list[Attempt], last: Attempt, scored: str) -> str:
    thoughts = " ".join([*(f"{attempt.line} no" for attempt in failures), f"{last.line}{scored}"])
    answer = last.answer.format(f"( {nearest(*last.others, last.needed)[0]} )")
    return f"<think> {thoughts} </think> <answer> {answer} </answer>"
