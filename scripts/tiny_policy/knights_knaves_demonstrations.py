"""Thoughts about puzzles of knights and knaves: careful ones, which check every claim, and hasty ones, which guess.

A warm-up on a mixture of both gives a policy that can reason and often does not: what reinforcement can improve.
"""

import random
from collections.abc import Iterator, Sequence

from evenkeel.rewards.verifiers.knights_knaves.language import roles
from evenkeel.rewards.verifiers.knights_knaves.puzzle import Puzzle, Statement, evaluate, people_in


def supposed_roles(puzzle: Puzzle, rng: random.Random, *, careful: bool) -> str:
    """A completion with a thought about ``puzzle``, compact in its phrasing, and the roles of all.

    Careful: the whole search, every supposition with the claims it decides, to the one consistent assignment. Hasty: a
    random guess, one speaker's claim checked, that speaker's role turned where the check fails, and no second look.
    """
    steps, assignment = (list(_search(puzzle, ())), puzzle.solution) if careful else _hasty(puzzle, rng)
    return " ".join(
        ["<think>", *steps, "</think>", "<answer>", roles(puzzle.names, assignment, "compact"), ". </answer>"]
    )


def _search(puzzle: Puzzle, assumed: tuple[bool, ...]) -> Iterator[str]:
    """The trials of a depth-first search, knight before knave, up to the solution.

    A claim is checked as soon as its speaker and all whom it mentions have a supposed role. Supposing a person decides
    nothing at times: such a step is not a trial.
    """
    if len(assumed) == len(puzzle.names):
        return
    for is_knight in (True, False):
        supposed = (*assumed, is_knight)
        checks = list(_checks(puzzle.statements, supposed))
        is_consistent = all(is_true == supposed[speaker] for speaker, is_true in checks)
        if checks:
            said = [_check(puzzle, speaker, is_true) for speaker, is_true in checks]
            whole = "consistent ." if len(supposed) == len(puzzle.names) else "possible ."
            ending = whole if is_consistent else "contradiction ."
            yield " ".join([f"suppose {roles(puzzle.names, supposed, 'compact')} .", *said, ending])
        if is_consistent:
            yield from _search(puzzle, supposed)
            if supposed == puzzle.solution[: len(supposed)]:
                return


def _checks(statements: Sequence[Statement], supposed: Sequence[bool]) -> Iterator[tuple[int, bool]]:
    """Speaker and truth of the claims that the newest role decides, up to the first contradiction."""
    for speaker, statement in enumerate(statements):
        if max(people_in(statement) | {speaker}) == len(supposed) - 1:
            is_true = evaluate(statement, supposed)
            yield speaker, is_true
            if is_true != supposed[speaker]:
                return


def _check(puzzle: Puzzle, speaker: int, is_true: bool) -> str:
    return f"{puzzle.names[speaker]} tells {'the truth' if is_true else 'a lie'} ."


def _hasty(puzzle: Puzzle, rng: random.Random) -> tuple[list[str], tuple[bool, ...]]:
    guess = [rng.random() < 0.5 for _ in puzzle.names]
    steps = [f"maybe {roles(puzzle.names, guess, 'compact')} ."]
    speaker = rng.randrange(len(guess))
    is_true = evaluate(puzzle.statements[speaker], guess)
    steps.append(_check(puzzle, speaker, is_true))
    if is_true != guess[speaker]:
        guess[speaker] = not guess[speaker]
        steps.append(f"so {roles([puzzle.names[speaker]], [guess[speaker]], 'compact')} .")
    return [*steps, "good enough ."], tuple(guess)
