"""Rewards for the form of a completion: its tags, length, repetitions. None of them reads an answer."""

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field

from evenkeel.rewards.extraction import is_blank, without_ending
from evenkeel.rewards.user_verifiers import bounded
from evenkeel.rewards.verifier import TokenVerifier, Verdict, Verifier, WrappingVerifier, tokens

_TAGS = {"think_answer": ("<think>", "</think>", "<answer>", "</answer>"), "think": ("<think>", "</think>")}
_SHAPES = {
    "think_answer": re.compile(r"<think>(.*)</think>\s*<answer>(.*)</answer>", re.DOTALL),
    "think": re.compile(r"<think>(.*)</think>(.*)", re.DOTALL),
}
Length = Annotated[int, Field(ge=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Format(Verifier):
    """Score 1 for a completion with the required tags, else 0. The content of thought and answer is not read.

    Each tag occurs exactly once, in order. Only blanks may stand before ``<think>`` and between ``</think>`` and
    ``<answer>``, only blanks and end-of-text tokens after ``</answer>``. Thought and answer are not blank: something
    in each is visible (`rewards.extraction.is_blank`). A ``<think>`` at the end of the prompt counts as part of the
    completion.

    TRL's ``think_format_reward`` gives 1 to an empty thought and to a ``</think>`` written twice; this does not.

    Attributes:
        tags: ``think_answer``: ``<think>…</think><answer>…</answer>``. ``think``: ``<think>…</think>`` and some text
            after it.
    """

    tags: Literal["think_answer", "think"] = "think_answer"
    reads_reference = False

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score the structure of ``completion``; ``reference`` is not read."""
        fault = self._fault(without_ending(completion))
        return Verdict(float(not fault), None, fault or "thought and answer are where they belong")

    def gold_completion(self, reference: Any) -> str | None:
        """A short text of the required structure."""
        return "<think>so</think>" + ("this" if self.tags == "think" else "<answer>this</answer>")

    def _fault(self, text: str) -> str:
        if any(text.count(tag) != 1 for tag in _TAGS[self.tags]):
            return f"{', '.join(_TAGS[self.tags])} are not there once each"
        found = _SHAPES[self.tags].fullmatch(text)
        if found is None:
            return "the tags are not in their order, or text stands outside of them"
        return "thought or answer is blank" if any(map(is_blank, found.groups())) else ""


def overlong_punishment(num_tokens: int, max_tokens: int, buffer_tokens: int) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, Eq. 13), in −1…0.

    0 for ``n ≤ max − buffer``; ``((max − buffer) − n) / buffer``, a line from 0 to −1, up to ``max``; −1 beyond. With
    ``buffer_tokens = 0`` it steps from 0 to −1 after ``max_tokens``.
    """
    over = num_tokens - (max_tokens - buffer_tokens)
    if over <= 0:
        return 0.0
    return -over / buffer_tokens if num_tokens <= max_tokens else -1.0


def cosine_schedule(num_tokens: int, max_tokens: int, shortest: float, longest: float) -> float:
    """``longest + ½ (shortest − longest)(1 + cos(π n / max))``: from ``shortest`` to ``longest`` at ``max_tokens``.

    Length and values of arXiv 2502.03373, Sec. 4.2. Beyond ``max_tokens`` it stays at ``longest``.
    """
    share = min(num_tokens / max_tokens, 1.0)
    return longest + 0.5 * (shortest - longest) * (1 + math.cos(math.pi * share))


@dataclass(frozen=True)
class SoftOverlong(TokenVerifier):
    """DAPO's punishment of completions near the length limit: 0 well below it, falling to −1 at it.

    To be added to a reward for the answer. See `overlong_punishment`; 0 is the full score, so that accuracy is the
    share of completions that are not punished.

    Attributes:
        max_tokens: the length from which the punishment is −1: `trl.max_completion_length`, or less.
        buffer_tokens: tokens before it over which the punishment grows. The paper: 16384 + 4096 and 4096.
    """

    max_tokens: Length
    buffer_tokens: Annotated[int, Field(ge=0)]
    reads_reference = False
    full_score = 0.0

    def __post_init__(self) -> None:
        """Check the two lengths."""
        if self.buffer_tokens > self.max_tokens:
            raise ValueError(f"buffer_tokens = {self.buffer_tokens} is more than max_tokens = {self.max_tokens}.")

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Punish the length of ``completion``; ``reference`` is not read."""
        length = len(tokens(completion, token_ids))
        score = overlong_punishment(length, self.max_tokens, self.buffer_tokens)
        return Verdict(score, None, f"{length} of {self.max_tokens} tokens")

    def gold_completion(self, reference: Any) -> str | None:
        """The empty text."""
        return ""


@dataclass(frozen=True)
class CosineLength(WrappingVerifier, TokenVerifier):
    """Another verifier's verdict, paid by length: short right answers earn more, short wrong ones less.

    ``r = cosine_schedule(n, max_tokens, right_short, right_long)`` for a right completion, the same of ``wrong_short``
    and ``wrong_long`` for a wrong one, and ``exceeded`` from ``max_tokens`` on, right or wrong: such a completion was
    cut off (arXiv 2502.03373, Sec. 4.2 and App. C.1; defaults of its Sec. 4.2). A right answer is one with the inner
    verifier's full score. Unscored stays unscored.

    ``full_score`` is the smaller of ``right_short`` and ``right_long``: right answers earn at least that, wrong ones
    less, so that accuracy keeps its meaning, except that right answers at the limit count as wrong.

    Attributes:
        verifier: scores the answer; in YAML a name or ``{name: …, option: …}``. A user's keeps its time limit.
        max_tokens: the length limit, `trl.max_completion_length`.
    """

    verifier: Verifier
    max_tokens: Length
    right_short: Finite = 2.0
    right_long: Finite = 1.0
    wrong_short: Finite = -10.0
    wrong_long: Finite = 0.0
    exceeded: Finite = -10.0
    full_score: float = field(init=False, repr=False, compare=False, default=1.0)

    def __post_init__(self) -> None:
        """Check that right answers earn more than wrong ones."""
        lowest_right = min(self.right_short, self.right_long)
        if max(self.wrong_short, self.wrong_long, self.exceeded) >= lowest_right:
            raise ValueError("write wrong_short, wrong_long and exceeded below right_short and right_long")
        if not self.verifier.reads_reference or isinstance(self.verifier, TokenVerifier):
            raise ValueError(f"verifier = {self.verifier!r} reads no answer. Write another, such as math_answer.")
        object.__setattr__(self, "full_score", lowest_right)
        object.__setattr__(self, "verifier", bounded(self.verifier))

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Score ``completion`` by the inner verifier and its length."""
        return self._paid(self.verifier(completion, reference), len(tokens(completion, token_ids)))

    def judge_all(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Score a batch by the inner verifier, then each completion by its length."""
        rows = zip(completions, token_ids or [None] * len(completions), strict=True)
        lengths = [len(tokens(completion, ids)) for completion, ids in rows]
        verdicts = self.verifier.judge_all(completions, references)
        return [self._paid(verdict, length) for verdict, length in zip(verdicts, lengths, strict=True)]

    def _paid(self, verdict: Verdict, length: int) -> Verdict:
        if verdict.score is None:
            return verdict
        if length >= self.max_tokens:
            score = self.exceeded
        elif verdict.score >= self.verifier.full_score:
            score = cosine_schedule(length, self.max_tokens, self.right_short, self.right_long)
        else:
            score = cosine_schedule(length, self.max_tokens, self.wrong_short, self.wrong_long)
        return replace(verdict, score=score, reason=f"{verdict.reason}; {length} of {self.max_tokens} tokens")


def repeated_share(sequence: Sequence[Hashable], ngram_size: int) -> float:
    """``1 − (different n-grams) / (n-grams)``, in 0…1; 0 for a sequence shorter than one n-gram.

    arXiv 2502.03373, App. C.2, as a share of the whole sequence. Time and memory are O(length × ``ngram_size``).
    """
    count = len(sequence) - ngram_size + 1
    if count <= 0:
        return 0.0
    return 1 - len({tuple(sequence[start : start + ngram_size]) for start in range(count)}) / count


@dataclass(frozen=True)
class RepetitionPenalty(TokenVerifier):
    """``max_penalty × repeated_share``: 0 if no n-gram of tokens occurs twice, near ``max_penalty`` for a loop.

    To be added to a reward for the answer; 0 is the full score, so that accuracy is the share of completions without
    any repetition. The paper punishes the repeated tokens themselves; one number per completion takes their share.

    Attributes:
        ngram_size: tokens that have to repeat together. Small sizes punish formulas and names, which may repeat; the
            paper uses 40.
        max_penalty: the penalty of a completion that only repeats itself, at most 0.
    """

    ngram_size: Length = 40
    max_penalty: Annotated[Finite, Field(le=0)] = -1.0
    reads_reference = False
    full_score = 0.0

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Punish the repetitions in ``completion``; ``reference`` is not read."""
        share = repeated_share(tokens(completion, token_ids), self.ngram_size)
        score = self.max_penalty * share if share else 0.0
        return Verdict(score, None, f"{share:.1%} of its {self.ngram_size}-grams are repetitions")

    def gold_completion(self, reference: Any) -> str | None:
        """The empty text."""
        return ""
