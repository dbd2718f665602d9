"""The adapter that makes a TRL reward function of a verifier."""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from rewards.extraction import THOUGHT_OPENS
from rewards.verifier import Verdict, Verifier

logger = logging.getLogger(__name__)


class RewardFunction:
    """A verifier as TRL calls reward functions: one score per completion, ``None`` = unjudged.

    The rows' ``reference`` column is what each completion is judged against. Per batch it logs, where TRL offers the
    hooks, ``verifier/<name>/accuracy`` (share of judged completions with the full score) and
    ``verifier/<name>/frac_unjudged``, and the columns ``<name>/answer`` and ``<name>/reason`` of the completions table.

    Args:
        verifier: judges each completion. One that raises leaves its row unjudged, with the exception as the reason: a
            malformed row must not end a long run.
        name: names its metrics.
        prefilled_thought: the chat template's generation prompt ends with ``<think>``. TRL hands over the completion
            without it; the verifier sees it. A prompt that is plain text is looked at itself.
    """

    def __init__(self, verifier: Verifier, name: str, *, prefilled_thought: bool = False) -> None:
        self.verifier = verifier
        self.prefilled_thought = prefilled_thought
        self.__name__ = name

    def __call__(
        self,
        *,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        reference: Sequence[Any],
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        verdicts = [
            self._judge(prompt, completion, expected)
            for prompt, completion, expected in zip(prompts, completions, reference, strict=True)
        ]
        if log_extra is not None:
            log_extra(f"{self.__name__}/answer", [verdict.answer for verdict in verdicts])
            log_extra(f"{self.__name__}/reason", [verdict.reason for verdict in verdicts])
        if log_metric is not None:  # TRL averages over the calls of all ranks: one call per completion is exact
            for verdict in verdicts:
                log_metric(f"verifier/{self.__name__}/frac_unjudged", float(verdict.score is None))
                if verdict.score is not None:
                    correct = verdict.score >= self.verifier.full_score
                    log_metric(f"verifier/{self.__name__}/accuracy", float(correct))
        return [verdict.score for verdict in verdicts]

    def _judge(self, prompt: Any, completion: Any, reference: Any) -> Verdict:
        text = completion if isinstance(completion, str) else completion[-1]["content"]
        if self._is_prefilled(prompt):
            text = THOUGHT_OPENS + text
        try:
            verdict = self.verifier(text, reference)
        except Exception as error:
            logger.exception("%s could not judge a completion against %.200r", self.__name__, reference)
            return Verdict(None, None, f"the verifier failed: {type(error).__name__}: {error}")
        if verdict.score is not None and not math.isfinite(verdict.score):
            return Verdict(None, verdict.answer, f"the verifier's score is {verdict.score}: {verdict.reason}")
        return verdict

    def _is_prefilled(self, prompt: Any) -> bool:
        return prompt.rstrip().endswith(THOUGHT_OPENS) if isinstance(prompt, str) else self.prefilled_thought
