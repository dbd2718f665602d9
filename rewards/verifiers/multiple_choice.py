"""The verifier of multiple-choice answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from evenkeel.rewards.extraction import Extraction, after_thought, answer_block, boxed_answers
from evenkeel.rewards.verifier import Verdict, Verifier

MAX_CHARACTERS = 2_000  # a choice's text is shorter

_LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?(?:(?:final|correct|right|best)\s+)?"
    r"(?:answer|option|choice)\b\s*(?:is\b)?\s*:?\s*",
    re.IGNORECASE,
)
_WRAPPER = re.compile(r"\\(?:boxed|text|mathrm|textbf|mathbf|textit)\s*\{([^{}]*)\}")
_LABELLED = re.compile(r"(?:\((\w{1,2})\)|(\w{1,2})\s?[.):–—-]|(\w{1,2})$)(?P<rest>.*)")


@dataclass(frozen=True)
class MultipleChoice(Verifier):
    """Score 1 for taking the right choice and no other, else 0.

    The reference is a letter (``"C"``), a position from 0 (``2``), or a mapping with ``answer``, a label or a position
    that is no label, and ``choices``, a list of texts or ``{"text": […], "label": […]}``. Anything else is unscored.

    The answer is the whole text that is read: ``C``, ``(c)``, ``C.``, ``C) Paris``, ``\\text{C}``, ``**C**``, or one
    choice's text, ``Paris``, each also behind "The answer is" or "Option". A letter with a text that is not its
    choice's, two letters, or a letter somewhere in a sentence is not an answer: in "A dog barks" nobody chose A. Where
    the reference is a letter or a position alone, nothing may follow the letter: with the choices unknown, a text after
    it could take it back ("C. No, wait: d").

    It is read from the ``<answer>`` block that ends the completion if there are answer tags after the thought, else
    from the last box, and all beside it, else from the last line that begins with "The answer is", else from the only
    line.
    """

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion`` against ``reference``."""
        try:
            question = _read_reference(reference)
        except ValueError as error:
            return Verdict(None, None, str(error))
        answer = self._answer(completion)
        if answer.text is None:
            return Verdict(0.0, None, answer.problem)
        taken = question.taken(answer.text)
        if taken is None:
            return Verdict(0.0, None, f"{answer.text[:60]!r} takes no single choice")
        return Verdict(float(taken == question.right), taken, f"the right choice is {question.right}")

    def gold_completion(self, reference: Any) -> str | None:
        """The right label in answer tags."""
        try:
            label = _read_reference(reference).right
        except ValueError:
            return None
        return f"<answer>{label}</answer>"

    def _answer(self, completion: str) -> Extraction:
        final = after_thought(completion)
        if final.text is None:
            return final
        if "<answer>" in final.text or "</answer>" in final.text:
            return answer_block(completion)
        if "\\boxed" in final.text:
            return boxed_answers(completion)
        line = _plain(final.text.rpartition("\n")[2][: MAX_CHARACTERS + 1])
        # The last line of a question repeated is its last choice.
        if "\n" in final.text and not _LEAD.match(line):
            return Extraction(None, "no answer block, no box, and the last line does not begin with 'The answer is'")
        return Extraction(line)


@dataclass(frozen=True)
class _Question:
    """``texts`` of the choices in the order of ``labels``; empty if only the labels are known."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    right: str

    def taken(self, answer: str) -> str | None:
        """The label of the one choice that ``answer`` takes."""
        if len(answer) > MAX_CHARACTERS:
            return None
        answer = _plain(answer)
        while _comparable(answer) not in self.texts and (lead := _LEAD.match(answer)):
            answer = _plain(answer[lead.end() :])
        match = _LABELLED.fullmatch(answer)
        written = match and next(filter(None, match.groups())).casefold()
        label = next((label for label in self.labels if label.casefold() == written), None)
        if match and label:
            rest = _comparable(match["rest"].lstrip(" .:)-–—"))
            own = dict(zip(self.labels, self.texts, strict=False)).get(label)
            # 1-5 may be a text as a whole
            if not rest or (rest == own and _comparable(answer) not in self.texts):
                return label
        same: list[str | None] = [
            label for label, text in zip(self.labels, self.texts, strict=False) if text == _comparable(answer)
        ]
        return self.right if self.right in same else same[0] if same else None


def _plain(text: str) -> str:
    """``text`` on one line, without emphasis, dollar signs around it, and LaTeX's text commands."""
    text = _WRAPPER.sub(r"\1", text).replace("**", "").replace("`", "").strip("$*_ \t\r\n")
    return " ".join(text.split())


def _comparable(text: str) -> str:
    return _plain(text).rstrip(".").casefold()


def _read_reference(reference: Any) -> _Question:
    """Choices and the right label of a reference. Raises ``ValueError`` if it is unusable."""
    answer = reference
    texts: tuple[str, ...] = ()
    labels = tuple(ascii_uppercase)
    if isinstance(reference, Mapping):
        if not {"answer", "choices"} <= reference.keys():
            raise ValueError(f"the reference is {reference!r:.80}; multiple_choice needs 'answer' and 'choices'")
        answer = reference["answer"]
        labels, texts = _choices(reference["choices"])
    upper = [label.upper() for label in labels]
    # A number is a label where labels are numbers.
    if isinstance(answer, str | int) and (wanted := str(answer).strip().strip("().").upper()) in upper:
        return _Question(labels, texts, labels[upper.index(wanted)])
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(labels):
        return _Question(labels, texts, labels[answer])
    raise ValueError(f"the answer {answer!r:.40} is none of the {len(labels)} labels {labels[0]}…{labels[-1]}")


def _choices(choices: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts, labels = choices, None
    if isinstance(choices, Mapping) and "text" in choices:
        texts, labels = choices["text"], choices.get("label")
    texts = tuple(texts) if isinstance(texts, Sequence) and not isinstance(texts, str) else ()
    labels = tuple(ascii_uppercase[: len(texts)]) if labels is None else tuple(labels)
    if not texts or len(labels) != len(texts) or not all(isinstance(each, str) for each in (*texts, *labels)):
        raise ValueError(f"the choices {choices!r:.80} are not a list of texts, at most 26, or of texts and labels")
    if len({label.casefold() for label in labels}) < len(labels):
        raise ValueError(f"the labels {labels!r:.80} are not all different")
    return labels, tuple(_comparable(text) for text in texts)
