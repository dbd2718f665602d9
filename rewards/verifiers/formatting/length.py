"""Rewards that depend on how many tokens a completion has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewards.user_verifiers import bounded
from rewards.verifier import TokenVerifier, Verdict, Verifier, score_problem, tokens


def overlong_punishment(num_tokens: int, max_tokens: int, buffer_tokens: int) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, Eq. 13), in −1…0.

    0 for ``n ≤ max − buffer``; ``((max − buffer) − n) / buffer``, a line from 0 to −1, up to ``max``; −1 beyond. With
    ``buffer_tokens = 0`` it steps from 0 to −1 behind ``max_tokens``.
    """
    over = num_tokens - (max_tokens - buffer_tokens)
    if over <= 0:
        return 0.0
    return -over / buffer_tokens if num_tokens <= max_tokens else -1.0


def cosine_schedule(num_tokens: int, max_tokens: int, shortest: float, longest: float) -> float:
    """``longest + ½ (shortest − longest)(1 + cos(π n / max))``: from ``shortest`` to ``longest`` at ``max_tokens``.

    Length and values of arXiv 2502.03373, Sec. 4.2. Beyond ``max_tokens`` it stays at ``longest``.
    """
    return longest + 0.5 * (shortest - longest) * (1 + math.cos(math.pi * min(num_tokens / max_tokens, 1.0)))


@dataclass(frozen=True)
class SoftOverlong(TokenVerifier):
    """DAPO's punishment of completions that come near the length limit: 0 well below it, falling to −1 at it.

    A term to add to a reward for the answer. See `overlong_punishment`; 0 is its full score, so that its accuracy is
    the share of completions that are not punished.

    Attributes:
        max_tokens: the length from which the punishment is −1: `trl.max_completion_length`, or less.
        buffer_tokens: over how many tokens before it the punishment grows. The paper: 16384 + 4096 and 4096.
    """

    max_tokens: int
    buffer_tokens: int
    reads_reference = False
    full_score = 0.0

    def __post_init__(self) -> None:
        """Check the two lengths."""
        if not 0 <= self.buffer_tokens <= self.max_tokens or self.max_tokens < 1:
            raise ValueError(
                f"max_tokens = {self.max_tokens} and buffer_tokens = {self.buffer_tokens}: the punishment grows over "
                "the buffer, which lies inside the limit; write 0 <= buffer_tokens <= max_tokens, and max_tokens >= 1"
            )

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Punish the length of ``completion``; ``reference`` is not read."""
        length = len(tokens(completion, token_ids))
        score = overlong_punishment(length, self.max_tokens, self.buffer_tokens)
        return Verdict(score, None, f"{length} of {self.max_tokens} tokens")

    def gold_completion(self, reference: Any) -> str | None:
        """The empty text."""
        return ""


@dataclass(frozen=True)
class CosineLength(TokenVerifier):
    """Another verifier's judgement, paid by length: a short right answer more, a short wrong one less.

    ``r = cosine_schedule(n, max_tokens, right_short, right_long)`` for a right completion, the same of ``wrong_short``
    and ``wrong_long`` for a wrong one, and ``exceeded`` from ``max_tokens`` on, right or wrong: such a completion was
    cut off (arXiv 2502.03373, Sec. 4.2 and App. C.1; defaults of its Sec. 4.2). A right answer is one with the inner
    verifier's full score. Unjudged stays unjudged.

    ``full_score`` is ``right_long``: a right answer earns at least that, a wrong one less, so that accuracy keeps its
    meaning, but for right answers at the limit, which count as wrong.

    Attributes:
        verifier: judges the answer; in YAML a name or ``{name: …, option: …}``. A user's own keeps its time limit.
        max_tokens: the length limit, `trl.max_completion_length`.
    """

    verifier: Verifier
    max_tokens: int
    right_short: float = 2.0
    right_long: float = 1.0
    wrong_short: float = -10.0
    wrong_long: float = 0.0
    exceeded: float = -10.0
    full_score: float = field(init=False, repr=False, compare=False, default=1.0)

    def __post_init__(self) -> None:
        """Build the inner verifier and check that right answers earn more than wrong ones."""
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens = {self.max_tokens}: no completion is that short; write the length limit")
        for name in ("right_short", "right_long", "wrong_short", "wrong_long", "exceeded"):
            if problem := score_problem(getattr(self, name)):
                raise ValueError(f"{name} = {getattr(self, name):g}: {problem}")
        lowest_right = min(self.right_short, self.right_long)
        if max(self.wrong_short, self.wrong_long, self.exceeded) >= lowest_right:
            raise ValueError(
                f"a wrong answer could earn {max(self.wrong_short, self.wrong_long, self.exceeded)} and a right one "
                f"{lowest_right}: then length is worth more than being right; write wrong_short, wrong_long and "
                "exceeded below right_short and right_long"
            )
        if not self.verifier.reads_reference or isinstance(self.verifier, TokenVerifier):
            raise ValueError(
                f"verifier = {self.verifier!r} does not say whether an answer is right, so there is nothing to pay by "
                "length; write one that judges answers, such as math_answer or exact_match"
            )
        object.__setattr__(self, "full_score", lowest_right)
        object.__setattr__(self, "verifier", bounded(self.verifier))

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Judge ``completion`` by the inner verifier and pay it by its length."""
        return self._paid(self.verifier(completion, reference), len(tokens(completion, token_ids)))

    def judge_all(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Judge a batch as the inner verifier does, then pay each by its length."""
        rows = zip(completions, token_ids or [None] * len(completions), strict=True)
        lengths = [len(tokens(completion, ids)) for completion, ids in rows]
        verdicts = self.verifier.judge_all(completions, references)
        return [self._paid(verdict, length) for verdict, length in zip(verdicts, lengths, strict=True)]

    def gold_completion(self, reference: Any) -> str | None:
        """The inner verifier's."""
        return self.verifier.gold_completion(reference)

    def wrong_completion(self, reference: Any) -> str | None:
        """The inner verifier's."""
        return self.verifier.wrong_completion(reference)

    def unanswerable(self, reference: Any) -> str:
        """That of the verifier it wraps."""
        return self.verifier.unanswerable(reference)

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
