"""Is this the answer of a countdown problem? Read by our own parser, counted, and computed exactly."""

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewards.extraction import answer_block
from rewards.verifier import Verdict, Verifier
from rewards.verifiers.countdown.expressions import MalformedExpressionError, parse_expression
from rewards.verifiers.countdown.solver import LARGEST_SEARCH, solution


@dataclass(frozen=True)
class Countdown(Verifier):
    """Score 1 for an expression over the given numbers that equals the target, else 0.

    The reference is a mapping ``{"numbers": [79, 17, 60], "target": 36}``; other keys are ignored, NumPy arrays and
    integers are accepted. Anything else is unjudged. The answer is the one ``<answer>`` block that ends the
    completion after the last ``</think>``; a closing ``= 36`` is allowed there and must name the target.

    Options:
        use_all: every given number must be used. The published task says "each number can only be used once", which
            asks for at most once, and that is the default.
    """

    use_all: bool = False

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge the answer in ``completion``. Wrong, never unjudged, whatever the completion holds."""
        try:
            numbers, target = _problem(reference)
        except ValueError as error:
            return Verdict(None, None, str(error))
        block = answer_block(completion)
        if block.text is None:
            return Verdict(0.0, None, block.problem)
        fault = self._fault(block.text, numbers, target)
        return Verdict(0.0, block.text, fault) if fault else Verdict(self.full_score, block.text, f"equals {target}")

    def gold_completion(self, reference: Any) -> str | None:
        """A completion with a solution found by search; ``None`` for more than four numbers or no solution."""
        try:
            numbers, target = _problem(reference)
        except ValueError:
            return None
        found = solution(numbers, target, use_all=self.use_all)
        return None if found is None else f"<think> {found} = {target} </think> <answer> {found} </answer>"

    def unanswerable(self, reference: Any) -> str:
        """That no expression has the target; not searched for more than four numbers."""
        numbers, target = _problem(reference)
        if len(numbers) > LARGEST_SEARCH or solution(numbers, target, use_all=self.use_all) is not None:
            return ""
        used = "all of" if self.use_all else "some of"
        return f"no expression over {used} {list(numbers)} equals {target}"

    def _fault(self, answer: str, numbers: tuple[int, ...], target: int) -> str | None:
        """What is wrong with the answer, or ``None``."""
        text, equals, claim = answer.partition("=")
        if equals and claim.strip() != str(target):
            return f"'= {claim.strip()[:40]}' stands after the expression; the target is {target}"
        try:
            expression = parse_expression(text)
        except MalformedExpressionError as error:
            return f"not an expression: {error}"
        used, given = Counter(expression.literals), Counter(numbers)
        if excess := used - given:
            return f"uses {sorted(excess.elements())} beyond the given {sorted(numbers)}"
        if self.use_all and used != given:
            return f"leaves {sorted((given - used).elements())} unused"
        if expression.value is None:
            return "divides by zero"
        return None if expression.value == target else f"equals {expression.value}, not {target}"


def _problem(reference: Any) -> tuple[tuple[int, ...], int]:
    """Numbers and target of a reference. Raises ``ValueError`` where they cannot be judged against."""
    if not isinstance(reference, Mapping) or not {"numbers", "target"} <= reference.keys():
        raise ValueError(f"the reference is {reference!r:.80}; countdown needs {{'numbers': [...], 'target': ...}}")
    numbers, target = reference["numbers"], reference["target"]
    try:
        given = tuple(_integer(number) for number in numbers)
        wanted = _integer(target)
    except TypeError:
        given, wanted = (), 0
    if not given or min(given) < 0:
        raise ValueError(
            f"numbers {numbers!r:.80} and target {target!r:.40}; countdown needs one or more non-negative integers "
            "and an integer target"
        )
    return given, wanted


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("a truth value is not a number of the problem")
    return operator.index(value)
