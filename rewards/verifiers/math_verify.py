"""The verdicts of TRL's ``accuracy_reward``, by math-verify, in worker processes with time limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerPool, WorkerResult
from evenkeel.rewards.verifier import BatchVerifier, Seconds, Verdict
from evenkeel.rewards.verifiers.math_answer.notation import without_dollars
from evenkeel.rewards.verifiers.math_answer.reference import golds

PARSING_SECONDS, COMPARING_SECONDS = 10, 5
"""TRL's limits for one text and one comparison; math-verify enforces them by ``SIGALRM`` in a worker's main thread."""


@dataclass(frozen=True)
class MathVerify(BatchVerifier):
    r"""Score 1 if math-verify finds the completion equal to the gold, as TRL's ``accuracy_reward`` calls it, else 0.

    Published numbers rest on it, with its mistakes: the thought is read too, and a gold without dollars or a
    box is read in part, ``3\sqrt{13}`` as 3. Write golds as ``$3\sqrt{13}$``, or map the column that holds the whole
    solution. `MathAnswer` is the verifier to train with; this one measures in addition, with ``weight: 0``.

    Unscored: a gold that is not a text, that math-verify cannot parse, or with which it reaches ``cpu_seconds`` on an
    empty completion too. A completion with which alone it does is wrong.

    Attributes:
        cpu_seconds: for one completion, enforced by the kernel: a signal does not interrupt C. More than TRL's limits.
    """

    cpu_seconds: Seconds = 60.0

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Score a batch; a gold with which a worker did not finish is tried again with an empty completion."""
        pairs = [pair for pair in zip(completions, references, strict=True) if isinstance(pair[1], str)]
        outcomes = self._pool().map(pairs)
        failed = list({gold: None for (_, gold), each in zip(pairs, outcomes, strict=True) if not each.done})
        alone = dict(zip(failed, self._pool().map([("", gold) for gold in failed]), strict=True))
        found = (_verdict(gold, each, alone.get(gold)) for (_, gold), each in zip(pairs, outcomes, strict=True))
        no_text = Verdict(None, None, "unusable reference: TRL's reward reads texts alone")
        return [next(found) if isinstance(reference, str) else no_text for reference in references]

    def gold_completion(self, reference: Any) -> str | None:
        """The reference's answer in a box."""
        try:
            return f"\\boxed{{{without_dollars(golds(reference)[0])}}}"
        except ValueError:
            return None

    def _pool(self) -> WorkerPool:
        return WorkerPool(
            "evenkeel.rewards.verifiers.math_verify:accuracy",
            cpu_seconds=self.cpu_seconds,
            wall_seconds=4 * self.cpu_seconds,
            warm_up=(("$\\boxed{\\frac{1}{2}}$", "$0.5$"),),
        )


def accuracy(item: tuple[str, str]) -> tuple[float | None, str | None]:
    """The score of a completion against a gold, ``None`` if the gold cannot be parsed; and the answer that was read.

    It equals ``trl.rewards.accuracy_reward`` for one completion; a test compares the two.
    """
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse, verify

    completion, gold = item
    parsed_gold = parse(gold, parsing_timeout=PARSING_SECONDS)
    if not parsed_gold:
        return None, None
    reading = LatexExtractionConfig(
        normalization_config=NormalizationConfig(units=True), boxed_match_priority=0, try_extract_without_anchor=False
    )
    answer = parse(
        completion, extraction_config=[reading], extraction_mode="first_match", parsing_timeout=PARSING_SECONDS
    )
    score = float(verify(parsed_gold, answer, timeout_seconds=COMPARING_SECONDS))
    return score, next((part for part in answer if isinstance(part, str)), None)


def _verdict(gold: str, outcome: WorkerResult, alone: WorkerResult | None) -> Verdict:
    if not outcome.done:  # if the gold fails alone too, it is at fault
        why = f"scoring ended: {outcome.status}: {outcome.detail}"
        is_wrong = alone is not None and alone.done
        return Verdict(0.0 if is_wrong else None, None, why, killed=outcome.killed, seconds=outcome.seconds)
    score, answer = outcome.value
    if score is None:
        remedy = f"write it as ${gold.strip():.80}$" if gold.strip(" $") and "$" not in gold else "correct the row"
        reason = f"unusable reference: math-verify cannot parse {gold!r:.80}; {remedy}"
    elif answer is None:
        reason = "no answer in LaTeX was read"
    else:
        reason = f"{'equal to' if score else 'differs from'} the reference {gold!r:.80}"
    return Verdict(score, answer, reason, seconds=outcome.seconds)
