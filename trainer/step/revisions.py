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
from trainer.step.compatibility import PreflightError
from trainer.step.rollout_signals import gathered_tokens, verdicts
from trainer.step.set_aside import holding

_NO_VERDICTS = (
    "revision: the reward functions leave no verdict on each completion in the column `correct`, so no answer can be "
    "told to be wrong and no revision to be right. Rewards made of verifiers leave it; a function of your own calls "
    "log_extra('correct', [True, False, None, …]), one for each completion."
)
Judge = Callable[[list[dict[str, Any]], list[Any], list[Any], list[list[int]]], Tensor]


@dataclass(frozen=True)
class Revision:
    """One completion ŷ of a revision prompt: what was sampled, and the verdict: 1 right, 0 wrong, NaN unjudged."""

    token_ids: list[int]
    correct: float


class Revisions:
    """Revise the wrong answers of a rollout batch; leaves the columns of `REVISION_COLUMNS`.

    Both the references and the revisions of a step are drawn from the run's seed and the step alone: a resumed run
    draws what the first one drew, and the rollouts are those of a run without revisions (vLLM samples by its own
    seed). Revisions are sampled as rollouts are.

    Args:
        options: which answers are compared, how, and what is credited.
        trainer: generates, gathers and counts.
        judge: TRL's ``_calculate_rewards`` of that trainer.

    Raises:
        PreflightError: the trainer generates with tools, environments or a rollout function of its own.
    """

    def __init__(self, options: RevisionOptions, trainer: Any, judge: Judge) -> None:
        own = [name for name in ("tools", "environment_factories", "rollout_func") if getattr(trainer, name, None)]
        if own:
            raise PreflightError(
                f"revision with {own[0]}: a revision is one plain completion of a text, and would be generated and "
                f"judged otherwise than the answer it revises. Leave revision or {own[0]} out."
            )
        self.options, self.trainer, self.judge = options, trainer, judge

    def __call__(
        self, inputs: Sequence[dict[str, Any]], batch: dict[str, Tensor], correct: Tensor | None
    ) -> dict[str, Tensor]:
        """The columns of all ranks' rows.

        Args:
            inputs: this rank's rows (B,) of the data.
            batch: this rank's rollout, ``completion_ids`` and ``completion_mask`` (B, T).
            correct: (N,) verdicts on all ranks' rollouts: 1 right, 0 wrong, NaN unjudged; ``None`` = there are none.

        Raises:
            ValueError: the reward functions leave no verdicts, or a prompt is no text.
        """
        if correct is None:
            raise ValueError(_NO_VERDICTS)
        jobs, most = self._jobs(correct, len(inputs))
        start = self.trainer.accelerator.process_index * len(inputs)
        asked = [(row, reference) for row, _, reference in jobs] + [(0, start)] * (most - len(jobs))
        own = self.trainer.processing_class.batch_decode(batch["completion_ids"], skip_special_tokens=True)
        texts = gather_object(own)
        prompts = [
            revision_prompt(inputs[row]["prompt"], own[row], texts[reference], self.options) for row, reference in asked
        ]
        revisions = _answered(self.trainer, [inputs[row] for row, _ in asked], prompts, self.judge) if most else []
        mine: dict[int, dict[int, Revision]] = defaultdict(dict)
        for (row, place, _), revision in zip(jobs, revisions, strict=False):  # those left over filled up the batch
            mine[row][place] = revision
        return self._columns(batch, mine, sum(len(revision.token_ids) for revision in revisions))

    def _jobs(self, correct: Tensor, rows: int) -> tuple[list[tuple[int, int, int]], int]:
        """This rank's revisions, each (its row, place among the row's, row of all ranks of the reference); and how many
        the rank with the most has."""
        options, trainer = self.options, self.trainer
        table = references(
            correct, trainer.num_generations, options.references, step_seed(trainer), need_correct=options.need_correct
        ).view(-1, rows, options.references)
        jobs = [
            (row, place, reference)
            for row, siblings in enumerate(table[trainer.accelerator.process_index].tolist())
            for place, reference in enumerate(siblings)
            if reference >= 0
        ]
        return jobs, int((table >= 0).sum((1, 2)).max())

    def _columns(
        self, batch: dict[str, Tensor], mine: dict[int, dict[int, Revision]], tokens: int
    ) -> dict[str, Tensor]:
        """``repair`` and ``edited`` of all ranks; logs what was revised, repaired, edited and spent."""
        completion_ids, lengths = batch["completion_ids"], batch["completion_mask"].sum(1).tolist()
        repaired = torch.full((len(lengths), self.options.references), torch.nan)
        edited = torch.ones(completion_ids.shape, dtype=torch.long)
        counts = {"rows": len(lengths), "revised": len(mine), "repaired": 0, "edited": 0, "aligned": 0}
        for row, revisions in mine.items():
            for place, revision in revisions.items():
                repaired[row, place] = revision.correct
            if right := [revision.token_ids for revision in revisions.values() if revision.correct == 1]:
                credited = credited_tokens(completion_ids[row, : lengths[row]].tolist(), right, self.options.credit)
                edited[row, : lengths[row]] = credited
                counts["repaired"] += 1
                counts["edited"] += int(credited.sum())
                counts["aligned"] += lengths[row]
        _log(self.trainer, {**counts, "tokens": tokens})
        device = completion_ids.device
        return {
            "repair": self.trainer.accelerator.gather(repair_scores(repaired).to(device)),
            "edited": gathered_tokens(self.trainer, edited.to(device), 1).bool(),
        }


def step_seed(trainer: Any) -> int:
    """A number for each pair of the run's seed and the rollout: its optimizer step, its place in that step."""
    place = trainer._step % trainer.args.gradient_accumulation_steps
    seed: int = trainer.args.seed * 1_000_003 + trainer.state.global_step + place * 7_919_000_003
    return seed


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
            f"revision: a prompt's last message has the content {content!r:.80}, and the template needs text. "
            "Revise text prompts alone, or leave revision out."
        )
    return [*prompt[:-1], {**prompt[-1], "content": options.revision_prompt(content, answer, reference)}]


def _answered(trainer: Any, rows: list[dict[str, Any]], prompts: list[Any], judge: Judge) -> list[Revision]:
    """One completion of each prompt, judged as an answer to its row; in batches of the size of the rollout's own."""
    size = trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation
    device, ranks = trainer.accelerator.device, trainer.accelerator.num_processes
    with _apart(trainer) as extra, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(step_seed(trainer) * ranks + trainer.accelerator.process_index)
        token_ids: list[list[int]] = []
        completions: list[Any] = []
        for first in range(0, len(prompts), size):
            _, ids, _, answers, *_ = trainer._generate(prompts[first : first + size])
            token_ids += ids
            completions += answers
        judge(rows, [row["prompt"] for row in rows], completions, token_ids)
    correct = verdicts(extra)
    if correct is None or len(correct) != len(rows):
        raise ValueError(_NO_VERDICTS)
    return [Revision(ids, right) for ids, right in zip(token_ids, correct.tolist(), strict=True)]


@contextmanager
def _apart(trainer: Any) -> Iterator[dict[str, list[Any]]]:
    """One completion a prompt, and metrics and columns that do not mix with the rollout's; yields the columns.

    ``num_tokens``, TRL's count of all tokens, goes on counting.
    """
    extra: dict[str, list[Any]] = defaultdict(list)
    ours = {
        "num_generations": 1,
        "_metrics": {mode: defaultdict(list) for mode in trainer._metrics},
        "_pending_extra_logs": extra,
        "_pending_metrics": defaultdict(list),
    }
    with holding(trainer, ours):
        yield extra
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
