"""The verifier of answers that must equal the reference."""

import re
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.extraction import after_thought, answer_block
from evenkeel.rewards.verifier import Verdict, Verifier
from evenkeel.rewards.verifiers.math_answer.reference import written


@dataclass(frozen=True)
class ExactMatch(Verifier):
    """Score 1 if the answer equals the reference up to white space, else 0.

    The answer is the answer block that ends the completion; without answer tags after the thought, it is the whole
    text after the thought. The reference is a text or a number, of which a whole one is written without ``.0``; with
    anything else, a blank text, NaN or infinity, the completion is unscored.

    Attributes:
        case_sensitive: "Paris" and "paris" differ.
    """

    case_sensitive: bool = True

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion`` against ``reference``."""
        expected = _written(reference)
        if expected is None:
            return Verdict(None, None, f"the reference {reference!r:.80} is neither a text nor a number")
        answer = after_thought(completion)
        if answer.text is not None and re.search("</?answer>", answer.text):
            answer = answer_block(completion)
        if answer.text is None:
            return Verdict(0.0, None, answer.problem)
        given = " ".join(answer.text.split())
        folded = str if self.case_sensitive else str.casefold
        if folded(given) in (folded(expected), folded(str(reference))):  # 12 and 12.0
            return Verdict(1.0, given, "equal to the reference")
        return Verdict(0.0, given, f"differs from the reference {expected!r:.80}")

    def gold_completion(self, reference: Any) -> str | None:
        """The reference in answer tags."""
        expected = _written(reference)
        return None if expected is None else f"<answer>{expected}</answer>"


def _written(reference: Any) -> str | None:
    try:
        return " ".join(written(reference).split()) or None
    except ValueError:
        return None
