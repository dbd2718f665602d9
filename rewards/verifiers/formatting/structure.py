"""Is a completion a thought followed by an answer, each in its tags?"""

from dataclasses import dataclass
from typing import Any, Literal

from rewards.extraction import ANSWER_CLOSES, ANSWER_OPENS, THOUGHT_CLOSES, THOUGHT_OPENS, is_blank, without_ending
from rewards.verifier import Verdict, Verifier

_THOUGHT, _ANSWER = (THOUGHT_OPENS, THOUGHT_CLOSES), (ANSWER_OPENS, ANSWER_CLOSES)
_TAGS = {"think_answer": _THOUGHT + _ANSWER, "think": _THOUGHT, "answer": _ANSWER}


@dataclass(frozen=True)
class Format(Verifier):
    """Score 1 for a completion of the asked structure, else 0. What thought and answer say is not read.

    Each tag stands there once in all, in order. Nothing but blanks stands before ``<think>`` and between ``</think>``
    and ``<answer>``, nothing but blanks and end-of-text tokens after ``</answer>``. Neither thought nor answer is
    blank: something in it can be seen (`rewards.extraction.is_blank`). A ``<think>`` that the prompt ends with belongs
    to the completion.

    TRL's ``think_format_reward`` gives 1 to an empty thought and to a ``</think>`` written twice; this does not.

    Attributes:
        tags: ``think_answer``: ``<think>…</think><answer>…</answer>``. ``think``: ``<think>…</think>`` and some text
            after it. ``answer``: any text, blank or not, and the ``<answer>…</answer>`` that ends it.
    """

    tags: Literal["think_answer", "think", "answer"] = "think_answer"
    reads_reference = False

    def __post_init__(self) -> None:
        """Check ``tags``."""
        if self.tags not in _TAGS:
            raise ValueError(
                f"tags = {self.tags!r} names no structure, so no completion could have it; "
                f"write one of {', '.join(_TAGS)}"
            )

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge the structure of ``completion``; ``reference`` is not read."""
        fault = self._fault(without_ending(completion))
        return Verdict(float(not fault), None, fault or "thought and answer are where they belong")

    def gold_completion(self, reference: Any) -> str | None:
        """The shortest text of the structure."""
        thought, answer = "<think>so</think>", "<answer>this</answer>"
        return {"think_answer": thought + answer, "think": thought + "this", "answer": answer}[self.tags]

    def _fault(self, text: str) -> str:
        tags = _TAGS[self.tags]
        counts = {tag: text.count(tag) for tag in tags}
        if wrong := [f"{count} times {tag}" for tag, count in counts.items() if count != 1]:
            return f"{', '.join(wrong)}, not once each"
        rest, pieces = text, []
        for tag in tags:
            piece, found, rest = rest.partition(tag)
            if not found:
                return f"{tag} does not stand in its place"
            pieces.append(piece.strip())
        before, *inside = pieces
        if before and self.tags != "answer":
            return f"{before[:40]!r} stands before {THOUGHT_OPENS}"
        if is_blank(inside[0]):
            return "the answer is blank" if self.tags == "answer" else "the thought is blank"
        if self.tags == "think":
            return "nothing stands after the thought" if is_blank(rest) else ""
        if self.tags == "think_answer" and inside[1]:
            return f"{inside[1][:40]!r} stands between thought and answer"
        if is_blank(inside[-1]):
            return "the answer is blank"
        return f"{rest.strip()[:40]!r} stands after the answer" if rest.strip() else ""
