"""Generated datasets: rows {prompt, reference} of puzzles from a seed, in two parts without a common puzzle.

The parts are cut from one list: give both sources of a run the same options but ``part``. Other options and errors are
those of the function of `evenkeel.rewards.generators` that is called.
"""

import random
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from evenkeel.rewards.generators.arithmetic import generate_arithmetic
from evenkeel.rewards.generators.countdown import Style as CountdownStyle
from evenkeel.rewards.generators.countdown import generate_countdown
from evenkeel.rewards.generators.knights_knaves.generator import generate_puzzles
from evenkeel.rewards.generators.small_programs import generate_programs
from evenkeel.rewards.verifiers.knights_knaves.language import NAMES
from evenkeel.rewards.verifiers.knights_knaves.puzzle import Style

Item = TypeVar("Item")
SplitName = Literal["train", "test"]
Rows = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
People = Annotated[int, Field(ge=2, le=8)]


def knights_knaves(
    *,
    part: SplitName,
    num_people: People | list[People],
    train: Rows,
    test: Rows,
    seed: int,
    names: list[str] | None = None,
    style: Style = "published",
    namings: Count = 1,
) -> list[dict[str, Any]]:
    """Knights-and-knaves puzzles, ``train`` and ``test`` for each number of people, disjoint up to renaming."""
    numbers = [num_people] if isinstance(num_people, int) else num_people
    if len({*numbers}) < len(numbers):
        raise ValueError(f"num_people = {numbers} names a number twice. Write it once.")
    if test % namings:
        raise ValueError(f"test = {test} is not a multiple of namings = {namings}: a puzzle would be in both sets.")
    rows = []
    pool = NAMES if names is None else names
    for number in numbers:
        puzzles = generate_puzzles(number, train + test, seed=seed, names=pool, style=style, namings=namings)
        for puzzle in _of_part(puzzles, part, test):
            reference = {"names": list(puzzle.names), "statements": str(puzzle.statements)}
            rows.append({"prompt": puzzle.quiz, "reference": reference, "num_people": number})
    return rows


def countdown(
    *,
    part: SplitName,
    train: Rows,
    test: Rows,
    seed: int,
    num_numbers: AtLeastTwo = 3,
    max_number: Count = 99,
    max_target: Count = 99,
    style: CountdownStyle = "sentence",
) -> list[dict[str, Any]]:
    """Countdown problems, each solvable: first the ``test`` problems, then ``train`` others; ``part`` selects."""
    problems = generate_countdown(
        train + test, num_numbers=num_numbers, max_number=max_number, max_target=max_target, seed=seed, style=style
    )
    return _rows(problems, part, test)


def arithmetic(
    *,
    part: SplitName,
    train: Rows,
    test: Rows,
    seed: int,
    num_numbers: AtLeastTwo = 3,
    max_number: Count = 20,
    max_result: Count = 99,
    operations: str = "+-*",
) -> list[dict[str, Any]]:
    """Questions such as "What is 3 + 4 * 5?" for ``math_answer``: ``test``, then ``train`` others; ``part`` selects."""
    problems = generate_arithmetic(
        train + test,
        num_numbers=num_numbers,
        max_number=max_number,
        max_result=max_result,
        operations=operations,
        seed=seed,
    )
    return _rows(problems, part, test)


def small_programs(
    *,
    part: SplitName,
    train: Rows,
    test: Rows,
    seed: int,
    num_steps: AtLeastTwo = 3,
    max_number: AtLeastTwo = 12,
    num_inputs: Annotated[int, Field(ge=2, le=41)] = 4,
) -> list[dict[str, Any]]:
    """Functions described step by step for ``code_tests``: first ``test``, then ``train`` others; ``part`` selects."""
    problems = generate_programs(
        train + test, num_steps=num_steps, max_number=max_number, num_inputs=num_inputs, seed=seed
    )
    return _rows(problems, part, test)


def guessing(
    *, part: SplitName, train: Rows, test: Rows, seed: int, largest: Count = 7, guesses: Count = 3
) -> list[dict[str, Any]]:
    """Rounds of the environment ``guessing``; give it the same ``largest`` and ``guesses``.

    The number, uniform in 1…``largest``, is the reference and not in the prompt. Prompts differ by the round's name
    alone, so that the parts share no row; a policy can learn how to play, not the numbers.
    """
    ask = f"Find a number from 1 to {largest} in {guesses} guesses."
    return _rounds(part, train, test, seed, ask, largest)


def key_door(
    *, part: SplitName, train: Rows, test: Rows, seed: int, length: Count = 4, moves: Count = 12
) -> list[dict[str, Any]]:
    """Rounds of the environment ``key_door``; give it the same ``length`` and ``moves``.

    The start, uniform in 1…``length``, is the reference and in the prompt. Rounds are named as in `guessing`.
    """
    ask = f"You are at place {{reference}} of {length}. Take the key at 1 and open the door at {length}"
    return _rounds(part, train, test, seed, f"{ask} in {moves} moves.", length)


def _rounds(part: SplitName, train: Rows, test: Rows, seed: int, ask: str, largest: int) -> list[dict[str, Any]]:
    """The rows of ``part``: the first ``test`` rounds, or the others, each with a reference in 1…``largest``."""
    rng = random.Random(seed)
    references = [rng.randint(1, largest) for _ in range(test + train)]
    rows = [
        {
            "prompt": f"Game {number // 50 + 1}, round {number % 50 + 1}. {ask.format(reference=reference)}",
            "reference": str(reference),
        }
        for number, reference in enumerate(references)
    ]
    return _of_part(rows, part, test)


def _rows(problems: list[Any], part: SplitName, test: Rows) -> list[dict[str, Any]]:
    return [{"prompt": each.question, "reference": each.reference} for each in _of_part(problems, part, test)]


def _of_part(items: list[Item], part: SplitName, test: Rows) -> list[Item]:
    """Of the first ``test`` items, or of the others."""
    return items[:test] if part == "test" else items[test:]
