"""Thoughts that lead to an answer: careful ones, which check every claim, and hasty ones, which guess.

A warm-up on a mixture of both gives a policy that can reason and often does not: what reinforcement can improve.
"""

import random
from dataclasses import dataclass

from evenkeel.rewards.generators.knights_knaves.search import Trial, search
from evenkeel.rewards.verifiers.knights_knaves.language import answer, claim, role, roles
from evenkeel.rewards.verifiers.knights_knaves.puzzle import Puzzle, Style, evaluate

# What stands before and after the careful steps; the compact phrasing spends no words on it.
HEAD: dict[Style, str] = {
    "published": "Suppose roles person by person, and check each claim as soon as it is decided.",
    "compact": "",
}
FOOT: dict[Style, str] = {
    "published": "Every claim agrees with its speaker, so this is the solution.",
    "compact": "",
}


@dataclass(frozen=True)
class Rationale:
    """A thought and the answer it leads to.

    Attributes:
        steps: the thought, sentence group by sentence group.
        answer: the text inside the answer tags.
        is_right: the answer is the puzzle's solution.
        separator: what stands between steps and around tags: a line break, or a blank in the compact phrasing.
    """

    steps: tuple[str, ...]
    answer: str
    is_right: bool
    separator: str

    @property
    def thought(self) -> str:
        """The text between the thought tags."""
        return self.separator.join(self.steps)

    @property
    def completion(self) -> str:
        """The whole completion: thought and answer in their tags."""
        parts = ("<think>", self.thought, "</think>", "<answer>", self.answer, "</answer>")
        return self.separator.join(parts)


def rationale(puzzle: Puzzle, rng: random.Random, *, careful: bool) -> Rationale:
    """A thought about ``puzzle`` in its own phrasing, and its answer.

    Careful: the whole search, every supposition with the claims it decides, to the one consistent assignment; always
    right, and the same for every ``rng``. Hasty: a random guess, one speaker's claim checked, that speaker's role
    turned where the check fails, and no second look; right more often than a blind guess, wrong more often than not.
    """
    steps, assignment = _careful(puzzle) if careful else _hasty(puzzle, rng)
    return Rationale(
        steps=tuple(steps),
        answer=answer(puzzle.names, assignment, puzzle.style),
        is_right=assignment == puzzle.solution,
        separator=" " if puzzle.style == "compact" else "\n",
    )


def careful_steps(puzzle: Puzzle) -> list[str]:
    """The trials of the careful search, one text a trial."""
    return [_trial_text(puzzle, trial) for trial in search(puzzle.statements)]


def _careful(puzzle: Puzzle) -> tuple[list[str], tuple[bool, ...]]:
    steps = [HEAD[puzzle.style], *careful_steps(puzzle), FOOT[puzzle.style]]
    return [step for step in steps if step], puzzle.solution


def _trial_text(puzzle: Puzzle, trial: Trial) -> str:
    checked = [_check_text(puzzle, speaker, is_true, trial.assumed[speaker]) for speaker, is_true in trial.checks]
    is_complete = len(trial.assumed) == len(puzzle.names)
    supposed = roles(puzzle.names, trial.assumed, puzzle.style)
    if puzzle.style == "compact":
        ending = "contradiction ." if not trial.is_consistent else "consistent ." if is_complete else "possible ."
        return " ".join([f"suppose {supposed} .", *checked, ending])
    ending = "That is a contradiction." if not trial.is_consistent else "No contradiction so far."
    return " ".join([f"Suppose {supposed}.", *checked, ending])


def _check_text(puzzle: Puzzle, speaker: int, is_true: bool, is_knight: bool) -> str:
    name = puzzle.names[speaker]
    if puzzle.style == "compact":
        return f"{name} tells {'the truth' if is_true else 'a lie'} ."
    said = claim(puzzle.statements[speaker], puzzle.names).replace("( ", "(").replace(" )", ")")
    link = "as" if is_true == is_knight else "but"
    needed = "true" if is_knight else "false"
    return (
        f"The claim of {name}, that {said}, is {str(is_true).lower()}, {link} a {role(is_knight)}'s must be {needed}."
    )


def _hasty(puzzle: Puzzle, rng: random.Random) -> tuple[list[str], tuple[bool, ...]]:
    guess = [rng.random() < 0.5 for _ in puzzle.names]
    compact = puzzle.style == "compact"
    guessed = roles(puzzle.names, guess, puzzle.style)
    steps = [f"maybe {guessed} ." if compact else f"Maybe {guessed}."]
    speaker = rng.randrange(len(guess))
    is_true = evaluate(puzzle.statements[speaker], guess)
    steps.append(_check_text(puzzle, speaker, is_true, guess[speaker]))
    if is_true != guess[speaker]:
        guess[speaker] = not guess[speaker]
        turned = roles([puzzle.names[speaker]], [guess[speaker]], puzzle.style)
        steps.append(f"so {turned} ." if compact else f"So {turned} after all.")
    steps.append("good enough ." if compact else "That is good enough.")
    return steps, tuple(guess)
