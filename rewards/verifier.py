"""The contract of a verifier: a completion and a reference in, a verdict with its evidence out.

A verdict has three values. *Right* and *wrong* are about the completion; **unscored** (score ``None``) says that the
*reference* is unusable or the verifier failed. A bad completion is never unscored: it is wrong. Unscored rows are left
out of every mean and move no weight.
"""

import logging
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

logger = logging.getLogger(__name__)
FAILED = "the verifier failed"
"""Begins the reason of each row that is unscored because its verifier raised or ended."""
NOT_APPLICABLE = "it returned None: not applicable"

LARGEST_SCORE = 1e12
"""In magnitude. Rewards are float32, whose largest is 3.4e38. The squares of a million scores of 1e12 sum up to 1e30,
which leaves a factor of 1e8 for the squares of reward weights; a score of 1e38 would make every advantage 0."""


Seconds = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
"""An option that is a limit of time, at most eleven days: clocks of the kernel end."""


@dataclass(frozen=True)
class Verdict:
    """A verifier's outcome for one completion.

    Attributes:
        score: the reward, in the verifier's own units; ``None`` = unscored.
        answer: what was read from the completion as its answer; ``None`` where no answer was found.
        reason: why this score, in words for the person who reads the completions table.
        killed: scoring was cut off at a limit of time or memory.
        seconds: wall time of scoring; ``None`` = not measured. Ignored by ``==``.
        applies: false = only the run's other rewards count for this completion; its score is ``None``.
        columns: further columns of the completions table.
        metrics: names and values to log.
    """

    score: float | None
    answer: str | None
    reason: str
    killed: bool = False
    seconds: float | None = field(default=None, compare=False)
    applies: bool = True
    columns: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[tuple[str, float]] = ()


class Verifier(ABC):
    """Scores completions against references.

    A subclass is a frozen dataclass whose fields are its options. It is deterministic, picklable and bounded in time
    whatever the completion contains. ``full_score`` is the score of a right answer; accuracy is the share of scored
    completions that reach it. ``reads_reference`` is false for a verifier of the form alone, which accepts
    any reference or none.
    """

    full_score: float = 1.0
    reads_reference: bool = True

    @abstractmethod
    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion``, the whole text that the policy wrote, against ``reference``."""

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Score a batch, in its order; a verifier with worker processes overrides this to use them in parallel.

        A verdict does not depend on the rest of the batch. A row for which the verifier raises gets
        ``Verdict(None, …)``: a malformed row must not end a long run.
        """
        return [
            self._timed(completion, reference) for completion, reference in zip(completions, references, strict=True)
        ]

    def _timed(self, completion: str, reference: Any, **more: Any) -> Verdict:
        started = time.perf_counter()
        try:
            verdict = as_verdict(self(completion, reference, **more))
        except SystemExit as stop:
            verdict = Verdict(None, None, f"{FAILED}: it called sys.exit({stop.code!r})")
        except Exception as error:
            logger.debug("%s could not score against %.200r", type(self).__name__, reference, exc_info=True)
            verdict = Verdict(None, None, f"{FAILED}: {type(error).__name__}: {error}")
        return replace(verdict, seconds=time.perf_counter() - started)

    def gold_completion(self, reference: Any) -> str | None:
        """A completion that must earn ``full_score``, or ``None`` where the reference holds no answer to write down.

        Datasets are checked with it before training: a verifier that refuses its own gold answer is a silent loss.
        """
        return None

    def wrong_completion(self, reference: Any) -> str | None:
        """A completion that must not earn ``full_score``, or ``None`` where none is known.

        Datasets are checked with it before training: a reference that accepts every answer teaches nothing.
        """
        return None

    def unanswerable(self, reference: Any) -> str:
        """Why no completion can be right against a readable ``reference``; empty if one can, or if this takes long."""
        return ""


def score_problem(score: float) -> str:
    """The reason why ``score`` cannot be a reward; empty if it can."""
    if not math.isfinite(score):
        return f"its score is {score}. Return a finite number, or None if it cannot score."
    if abs(score) > LARGEST_SCORE:
        return f"its score is {score:g}, beyond ±{LARGEST_SCORE:g}, whose squares overflow float32. Divide it."
    return ""


def as_verdict(result: Any) -> Verdict:
    """A verifier's return value as a verdict: a bare number is a score, ``True`` 1, ``False`` 0, ``None`` unscored.

    Scalars of NumPy and torch count as numbers. A verdict's fields become the plain types that it
    declares, so that JSON can write it.

    Raises:
        TypeError: it is none of these, or a verdict whose score is none of these.
        ValueError: a verdict whose ``killed`` is not one truth value, or whose ``seconds`` is not a number.
    """
    if isinstance(result, Verdict):
        score = None if result.score is None else as_verdict(result.score).score
        answer = None if result.answer is None else str(result.answer)
        seconds = None if result.seconds is None else float(result.seconds)
        metrics = tuple((str(name), float(value)) for name, value in result.metrics)
        rest = bool(result.applies), dict(result.columns), metrics
        return Verdict(score, answer, str(result.reason), bool(result.killed), seconds, *rest)
    if result is None:
        return Verdict(None, None, "the verifier returned None, which is unscored")
    holds_one = callable(getattr(result, "item", None)) and getattr(result, "size", 1) != 0
    number = result.item() if holds_one else result
    if isinstance(number, int | float):
        return Verdict(float(number), None, f"the verifier returned {result!r}")
    what = f"it returned {result!r:.80} of type {type(result).__name__}, which is not a verdict."
    raise TypeError(f"{what} Return a number, True, False, None or Verdict(score, answer, reason)")


class TokenVerifier(Verifier):
    """A verifier that also reads the completion's tokens: its length, its repetitions.

    ``token_ids`` are those that the policy sampled, including the end-of-text token. ``None``: no policy wrote the
    text (gold answers tried before training); its words, separated by white space, are counted instead of tokens.
    """

    @abstractmethod
    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Score ``completion``, whose tokens are ``token_ids``, against ``reference``."""

    def judge_all(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Score a batch as `Verifier.judge_all` does; ``token_ids`` holds one sequence per completion."""
        rows = zip(completions, references, token_ids or [None] * len(completions), strict=True)
        return [self._timed(completion, reference, token_ids=ids) for completion, reference, ids in rows]


class BatchVerifier(Verifier):
    """A verifier with a ``judge_all`` of its own, which also scores single completions."""

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion`` as a batch of one."""
        return self.judge_all([completion], [reference])[0]


class WrappingVerifier(BatchVerifier):
    """A verifier that changes the verdicts of another, ``verifier``, and takes its gold and wrong completions."""

    verifier: Verifier

    def gold_completion(self, reference: Any) -> str | None:
        """That of ``verifier``."""
        return self.verifier.gold_completion(reference)

    def wrong_completion(self, reference: Any) -> str | None:
        """That of ``verifier``."""
        return self.verifier.wrong_completion(reference)

    def unanswerable(self, reference: Any) -> str:
        """That of ``verifier``."""
        return self.verifier.unanswerable(reference)


def tokens(completion: str, token_ids: Sequence[int] | None) -> Sequence[int]:
    """``token_ids``; if they are ``None``, a number for each word of ``completion``, the same for equal words."""
    if token_ids is not None:
        return token_ids
    numbers: dict[str, int] = {}
    return [numbers.setdefault(word, len(numbers)) for word in completion.split()]


def readable(text: str) -> str:
    """``text`` with U+FFFD for each half of a surrogate pair, which no tokenizer and no file takes."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
