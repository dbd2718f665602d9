"""The verifier of knights-and-knaves puzzles, by their statements."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evenkeel.rewards.extraction import answer_block, is_blank
from evenkeel.rewards.verifier import Verdict, Verifier
from evenkeel.rewards.verifiers.knights_knaves.answer import names_in, parse_roles
from evenkeel.rewards.verifiers.knights_knaves.language import numbered_roles, role, roles
from evenkeel.rewards.verifiers.knights_knaves.puzzle import (
    Statement,
    checked_statements,
    evaluate,
    parse_statements,
    solutions,
)

_SCORES = {
    "accuracy": {"right": 1.0, "wrong": 0.0, "unreadable": 0.0},
    "paper": {"right": 3.0, "wrong": -0.5, "unreadable": -1.0, "bad format": -3.0},
}


@dataclass(frozen=True)
class KnightsKnaves(Verifier):
    """Score 1 if the answer gives every inhabitant the right role, else 0; the scheme ``paper`` has other scores.

    The answer is the `answer_block` of the completion, in the form of
    :mod:`evenkeel.rewards.verifiers.knights_knaves.answer`.

    It is right if the roles satisfy the puzzle's *statements*: every knight's claim is true, every knave's false. If a
    puzzle has several solutions, each is right. Without statements the roles must be those of ``solution_text_format``.

    Schemes:
        accuracy: 1 right, 0 otherwise. The completion needs no thought.
        paper: the rule reward of Logic-RL (arXiv 2502.14768) and of "Do Not Let Low-Probability Tokens Over-Dominate"
            (arXiv 2505.12929): format ±1, plus +2 right, −1.5 wrong, −2 without a readable answer or with a bad format.
            The sums are 3, −0.5, −1 and −3. The format is good when ``<think>``, ``</think>``, ``<answer>`` and
            ``</answer>`` each occur once, in this order, in the whole text (with a ``<think>`` that the prompt ends
            with), and the thought is not blank (zero-width characters are blanks; the published rule pays blank
            thoughts). The published substring tests are not used: answers are read as under *accuracy*.

    The reference is a mapping with keys of the published rows, others are ignored: ``statements`` (text or nested
    tuples) with ``names``, or ``solution_text_format``, or all of them. Unscored: a reference without these,
    unreadable, without a solution, or whose solution contradicts its statements.

    Attributes:
        scheme: the scores, see above.
    """

    scheme: Literal["accuracy", "paper"] = "accuracy"

    @property
    def full_score(self) -> float:  # type: ignore[override]
        """That of a right answer in the scheme."""
        return _SCORES[self.scheme]["right"]

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion`` against ``reference``."""
        scores = _SCORES[self.scheme]
        try:
            puzzle = _read_reference(reference)
        except ValueError as error:
            return Verdict(None, None, f"unusable reference: {error}")
        if self.scheme == "paper" and (fault := _format_fault(completion)):
            return Verdict(scores["bad format"], None, fault)
        block = answer_block(completion)
        if block.text is None:
            return Verdict(scores["unreadable"], None, block.problem)
        stated = parse_roles(block.text, puzzle.names)
        if isinstance(stated, str):
            return Verdict(scores["unreadable"], None, stated)
        answer = roles(puzzle.names, stated, "published")
        mistake = _mistake(puzzle, stated)
        return Verdict(scores["wrong" if mistake else "right"], answer, mistake or "the solution")

    def gold_completion(self, reference: Any) -> str | None:
        """A short thought and the reference's solution, one numbered line per person."""
        try:
            puzzle = _read_reference(reference)
        except ValueError:
            return None
        lines = numbered_roles(puzzle.names, puzzle.solution)
        return f"<think>\nEvery claim agrees with its speaker.\n</think>\n<answer>\n{lines}\n</answer>"


@dataclass(frozen=True)
class _Reference:
    names: tuple[str, ...]
    statements: tuple[Statement, ...] | None
    solution: tuple[bool, ...]


def _format_fault(completion: str) -> str:
    tags = re.findall("</?(?:think|answer)>", completion)
    if tags != ["<think>", "</think>", "<answer>", "</answer>"]:
        return "the tags of thought and answer are not there once each, in order"
    thought = completion.partition("<think>")[2].partition("</think>")[0]
    return "the thought is blank" if is_blank(thought) else ""


def _mistake(puzzle: _Reference, stated: Sequence[bool]) -> str:
    if puzzle.statements is None:
        wrong = [name for name, own, true in zip(puzzle.names, stated, puzzle.solution, strict=True) if own != true]
        return f"the role of {', '.join(wrong)} is not the solution's" if wrong else ""
    for name, statement, is_knight in zip(puzzle.names, puzzle.statements, stated, strict=True):
        if evaluate(statement, stated) != is_knight:
            kind = "true" if not is_knight else "false"
            return f"with these roles the claim of {name} is {kind}, though {name} is called a {role(is_knight)}"
    return ""


def _read_reference(reference: Any) -> _Reference:
    """``reference`` as names, statements and a solution.

    Raises:
        ValueError: why no completion can be scored against it.
    """
    if not isinstance(reference, Mapping):
        raise ValueError(f"{type(reference).__name__} is not a mapping with the keys of a puzzle's row")
    gold_text, value = reference.get("solution_text_format"), reference.get("statements")
    if not isinstance(gold_text, str | None):
        raise ValueError(f"solution_text_format is {type(gold_text).__name__}, not a text")
    names = _names(reference.get("names"), gold_text)
    gold = None if gold_text is None else parse_roles(gold_text, names)
    if isinstance(gold, str):
        raise ValueError(f"solution_text_format: {gold}")
    if value is None:
        if gold is None:
            raise ValueError("it has neither statements nor solution_text_format")
        return _Reference(names, None, gold)
    statements = parse_statements(value) if isinstance(value, str) else checked_statements(value)
    if len(statements) != len(names):
        raise ValueError(f"{len(statements)} statements for {len(names)} names")
    found = solutions(statements)
    if not found or gold not in (None, *found):
        raise ValueError("its solution contradicts its statements, or there is none")
    return _Reference(names, statements, gold or found[0])


def _names(value: Any, gold_text: str | None) -> tuple[str, ...]:
    if value is not None and (isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)):
        raise ValueError(f"names is {type(value).__name__}, not a list of names")
    names = tuple(names_in(gold_text or "") if value is None else value)
    if not names or not all(isinstance(name, str) and name.strip() == name != "" for name in names):
        raise ValueError(f"names {list(names)!r:.80} are not one or more texts without blanks around them")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"names {list(names)!r:.80} are not all different")
    return names
