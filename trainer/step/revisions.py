"""The second generation of a step: wrong answers are written again beside a sibling, judged, and aligned.

It comes between the rewards and the advantages. All ranks make the same calls of the trainer's own generation, with the
same number of rows, so that it runs wherever the rollout runs: transformers, vLLM, sharded weights.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from trainer.algorithms.revisions.edits import credited_tokens
from trainer.algorithms.revisions.options import RevisionOptions
from trainer.algorithms.revisions.references import references
from trainer.algorithms.revisions.scores import repair_scores

Judge = Callable[[list[dict[str, Any]], list[Any], list[Any], list[list[int]]], Tensor]


@dataclass(frozen=True)
class Revision:
    """One completion ŷ of a revision prompt: what was sampled, and the verdict, ``None`` where there is none."""

    token_ids: list[int]
    correct: bool | None


class Revisions:
    """Revise the wrong answers of a rollout batch.

    Args:
        options: which answers are compared, how, and what is credited.
        seed: of the run. The references of a step depend on it and on the step alone, so that a resumed run draws what
            the first one drew; the revisions are sampled from the trainer's own random stream.
    """

    columns = ("repair", "edited")
    """What an estimator may ask for: ``repair`` (N,) in [0, 1]; ``edited`` (N, T) bool, True where a right revision
    edited the token, and everywhere in rows without one."""

    def __init__(self, options: RevisionOptions, seed: int) -> None:
        self.options = options
        self.seed = seed

    def __call__(
        self, trainer: Any, inputs: Sequence[dict[str, Any]], batch: dict[str, Tensor], correct: Tensor, judge: Judge
    ) -> dict[str, Tensor]:
        """The columns of all ranks' rows.

        Args:
            trainer: generates, gathers and counts.
            inputs: this rank's rows (B,) of the data.
            batch: this rank's rollout, ``completion_ids`` and ``completion_mask`` (B, T).
            correct: (N,) verdicts on all ranks' rollouts: 1 right, 0 wrong, NaN unjudged.
            judge: TRL's ``_calculate_rewards``.
        """
        table = references(
            correct,
            trainer.num_generations,
            self.options.references,
            self.seed * 1_000_003 + trainer.state.global_step,
            need_correct=self.options.need_correct,
        ).cpu()
        rank, ranks = trainer.accelerator.process_index, trainer.accelerator.num_processes
        start, most = rank * len(inputs), int((table >= 0).view(ranks, -1).sum(1).max())
        jobs = [
            (row, place, int(reference))
            for row, siblings in enumerate(table[start : start + len(inputs)])
            for place, reference in enumerate(siblings)
            if reference >= 0
        ]
        prompts = self._prompts(trainer, inputs, batch, [(row, reference) for row, _, reference in jobs], start, most)
        rows = [inputs[row] for row, _, _ in jobs] + [inputs[0]] * (most - len(jobs))
        revisions = _answered(trainer, rows, prompts, judge) if most else []
        mine: dict[int, dict[int, Revision]] = defaultdict(dict)
        for (row, place, _), revision in zip(jobs, revisions, strict=False):  # what is left over filled up the batch
            mine[row][place] = revision
        return self._columns(trainer, batch, mine, sum(len(revision.token_ids) for revision in revisions))

    def _prompts(
        self,
        trainer: Any,
        inputs: Sequence[dict[str, Any]],
        batch: dict[str, Tensor],
        pairs: list[tuple[int, int]],
        start: int,
        most: int,
    ) -> list[Any]:
        """The revision prompt of each pair (row of this rank, reference of all ranks), filled up to ``most``."""
        own = trainer.processing_class.batch_decode(batch["completion_ids"], skip_special_tokens=True)
        texts = gather_object(own)
        pairs = pairs + [(0, start)] * (most - len(pairs))
        return [
            revision_prompt(inputs[row]["prompt"], own[row], texts[reference], self.options) for row, reference in pairs
        ]

    def _columns(
        self, trainer: Any, batch: dict[str, Tensor], mine: dict[int, dict[int, Revision]], tokens: int
    ) -> dict[str, Tensor]:
        """``repair`` and ``edited`` of all ranks; logs what was revised, repaired, edited and spent."""
        completion_ids, lengths = batch["completion_ids"], batch["completion_mask"].sum(1).tolist()
        repaired = torch.full((len(lengths), self.options.references), torch.nan)
        edited = torch.ones(completion_ids.shape, dtype=torch.bool)
        counts = {"revised": 0, "repaired": 0, "edited": 0, "aligned": 0, "rows": len(lengths), "tokens": tokens}
        for row, revisions in mine.items():
            for place, revision in revisions.items():
                repaired[row, place] = torch.nan if revision.correct is None else float(revision.correct)
            counts["revised"] += 1
            if right := [revision.token_ids for revision in revisions.values() if revision.correct]:
                credited = credited_tokens(completion_ids[row, : lengths[row]].tolist(), right, self.options.credit)
                edited[row, : lengths[row]] = credited
                counts["repaired"] += 1
                counts["edited"] += int(credited.sum())
                counts["aligned"] += lengths[row]
        _log(trainer, counts)
        accelerator, device = trainer.accelerator, completion_ids.device
        padded = accelerator.pad_across_processes(edited.to(device), dim=1, pad_index=1)
        return {
            "repair": accelerator.gather(repair_scores(repaired).to(device)),
            "edited": accelerator.gather(padded),
        }


def revision_prompt(prompt: Any, answer: str, reference: str, options: RevisionOptions) -> Any:
    """``prompt``, plain text or messages, with the template in place of its text or of its last message's.

    Raises:
        ValueError: the last message is no text.
    """
    if isinstance(prompt, str):
        return options.revision_prompt(prompt, answer, reference)
    content = prompt[-1]["content"]
    if not isinstance(content, str):
        raise ValueError(
            f"algorithm.revision: a prompt's last message has the content {content!r:.80}, and the template needs text. "
            "Revise text prompts alone, or leave algorithm.revision out."
        )
    return [*prompt[:-1], {**prompt[-1], "content": options.revision_prompt(content, answer, reference)}]


def _answered(trainer: Any, rows: list[dict[str, Any]], prompts: list[Any], judge: Judge) -> list[Revision]:
    """One completion of each prompt, judged as an answer to its row; in batches of the size of the rollout's own."""
    size = trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation
    with _apart(trainer) as extra:
        token_ids: list[list[int]] = []
        completions: list[Any] = []
        for first in range(0, len(prompts), size):
            _, ids, _, answers, *_ = trainer._generate(prompts[first : first + size])
            token_ids += ids
            completions += answers
        judge(rows, [row["prompt"] for row in rows], completions, token_ids)
        verdicts = extra.get("correct", [])
    if len(verdicts) != len(rows):
        raise ValueError(
            f"algorithm.revision: the reward functions left {len(verdicts)} verdicts in the column `correct` for "
            f"{len(rows)} revisions, so none of them can be told to be right. Rewards made of verifiers leave one for "
            "each completion; a function of your own calls log_extra('correct', [True, False, None, …])."
        )
    return [Revision(ids, right) for ids, right in zip(token_ids, verdicts, strict=True)]


@contextmanager
def _apart(trainer: Any) -> Iterator[dict[str, list[Any]]]:
    """One completion a prompt, and metrics and columns that do not mix with the rollout's; yields the columns.

    ``num_tokens``, TRL's count of all tokens, goes on counting.
    """
    extra: dict[str, list[Any]] = defaultdict(list)
    metrics = {mode: defaultdict(list) for mode in trainer._metrics}
    ours = {"num_generations": 1, "_metrics": metrics, "_pending_extra_logs": extra}
    ours["_pending_metrics"] = defaultdict(list)
    kept = {name: getattr(trainer, name) for name in ours}
    try:
        vars(trainer).update(ours)
        yield extra
    finally:
        vars(trainer).update(kept)
    trainer._metrics["train"]["num_tokens"] = [trainer.state.num_input_tokens_seen]


def _log(trainer: Any, counts: dict[str, int]) -> None:
    """Of all ranks: shares of the rows that were revised and of these that some revision repaired, tokens spent."""
    device = trainer.accelerator.device
    totals = trainer.accelerator.reduce(torch.tensor([*counts.values()], dtype=torch.float64, device=device), "sum")
    total = dict(zip(counts, totals.tolist(), strict=True))
    metrics = trainer._metrics["train"]
    metrics["revisions/frac_revised"].append(total["revised"] / total["rows"])
    metrics["revisions/tokens"].append(total["tokens"])
    if total["revised"]:
        metrics["revisions/frac_repaired"].append(total["repaired"] / total["revised"])
    if total["aligned"]:
        metrics["revisions/frac_tokens_edited"].append(total["edited"] / total["aligned"])
