"""The second generation of a step: wrong answers are written again beside a sibling, judged, and aligned.

It comes between the rewards and the advantages. All ranks make the same calls of the trainer's own generation, with the
same number of rows, so that it runs wherever the rollout runs: transformers, vLLM, sharded weights.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from evenkeel.trainer.algorithms.revisions import RevisionOptions, credited_tokens, references, repair_scores
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Batch, Rollout, Row, verdicts

_NO_VERDICTS = (
    "revision: the reward functions leave no verdict on each completion in the column `correct`, so no answer can be "
    "reported as wrong and no revision to be right. Rewards made of verifiers leave it; a function of your own calls "
    "log_extra('correct', [True, False, None, …]), one for each completion."
)
Write = Callable[[list[Row], list[Any]], tuple[list[list[int]], Mapping[str, list[Any]]]]
"""Generates one completion of each prompt, judged as an answer to its row: their tokens, and what the reward functions
logged, name → one value a row. All ranks call it with as many rows."""


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
        decode: tokens of completions → their texts.
    """

    def __init__(
        self,
        options: RevisionOptions,
        ranks: Ranks,
        *,
        group_size: int,
        decode: Callable[[Any], list[str]],
    ) -> None:
        self.options, self.ranks, self.group_size, self.decode = options, ranks, group_size, decode

    def __call__(
        self, rollout: Rollout, correct: Tensor | None, seed: int, write: Write, metrics: dict[str, list[float]]
    ) -> dict[str, Tensor]:
        """The columns of all ranks' rows.

        Args:
            correct: (N,) verdicts on all ranks' rollouts: 1 right, 0 wrong, NaN unjudged; ``None`` = there are none.
            seed: another one for each rollout batch.
            metrics: where ``revisions/…`` are added.

        Raises:
            ValueError: the reward functions leave no verdicts, or a prompt is not text.
        """
        if correct is None:
            raise ValueError(_NO_VERDICTS)
        rows, batch = rollout.rows, rollout.batch
        jobs, most = self._jobs(correct, len(rows), seed)
        asked = [(row, reference) for row, _, reference in jobs] + [(0, self.ranks.index * len(rows))] * (
            most - len(jobs)
        )
        own = self.decode(batch["completion_ids"])
        texts = gather_object(own)
        prompts = [
            revision_prompt(rows[row]["prompt"], own[row], texts[reference], self.options) for row, reference in asked
        ]
        revisions: list[Revision] = []
        if most:
            token_ids, logged = write([rows[row] for row, _ in asked], prompts)
            right = verdicts(logged, told=True)
            if right is None or len(right) != len(asked):
                raise ValueError(_NO_VERDICTS)
            revisions = [Revision(ids, value) for ids, value in zip(token_ids, right.tolist(), strict=True)]
        mine: dict[int, dict[int, Revision]] = defaultdict(dict)
        for (row, place, _), revision in zip(jobs, revisions, strict=False):  # those left over filled up the batch
            mine[row][place] = revision
        return self._columns(batch, mine, sum(len(revision.token_ids) for revision in revisions), metrics)

    def _jobs(self, correct: Tensor, rows: int, seed: int) -> tuple[list[tuple[int, int, int]], int]:
        """This rank's revisions, each (its row, place among the row's, row of all ranks of the reference); and how many
        the rank with the most has."""
        options = self.options
        table = references(correct, self.group_size, options.references, seed, need_correct=options.need_correct).view(
            -1, rows, options.references
        )
        jobs = [
            (row, place, reference)
            for row, siblings in enumerate(table[self.ranks.index].tolist())
            for place, reference in enumerate(siblings)
            if reference >= 0
        ]
        return jobs, int((table >= 0).sum((1, 2)).max())

    def _columns(
        self,
        batch: Batch,
        mine: dict[int, dict[int, Revision]],
        tokens: int,
        metrics: dict[str, list[float]],
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
        self._log({**counts, "tokens": tokens}, metrics)
        device = completion_ids.device
        return {
            "repair": self.ranks.gathered(repair_scores(repaired).to(device)),
            "edited": self.ranks.gathered_tokens(edited.to(device), 1).bool(),
        }

    def _log(self, counts: dict[str, int], metrics: dict[str, list[float]]) -> None:
        """Of all ranks: shares of the rows that were revised and of these that some revision repaired, tokens spent."""
        numbers = torch.tensor([*counts.values()], dtype=torch.float64, device=self.ranks.device)
        total = dict(zip(counts, self.ranks.accelerator.reduce(numbers, "sum").tolist(), strict=True))
        metrics["revisions/frac_revised"].append(total["revised"] / total["rows"])
        metrics["revisions/tokens"].append(total["tokens"])
        if total["revised"]:
            metrics["revisions/frac_repaired"].append(total["repaired"] / total["revised"])
        if total["aligned"]:
            metrics["revisions/frac_tokens_edited"].append(total["edited"] / total["aligned"])


def revision_prompt(prompt: Any, answer: str, reference: str, options: RevisionOptions) -> Any:
    """``prompt``, plain text or messages, with the template in place of its text or of its last message's.

    Raises:
        ValueError: the last message is not text.
    """
    return in_place_of_text(
        prompt, partial(options.revision_prompt, answer=answer, reference=reference), "revision", "Revise"
    )


def in_place_of_text(prompt: Any, written: Callable[[str], str], option: str, use: str) -> Any:
    """``prompt``, plain text or messages, with what is ``written`` from its text, or its last message's, in its place.

    Raises:
        ValueError: the last message is not text; the message says so of ``option`` and its ``use``.
    """
    if isinstance(prompt, str):
        return written(prompt)
    content = prompt[-1]["content"]
    if not isinstance(content, str):
        raise ValueError(
            f"{option}: a prompt's last message has the content {content!r:.80}, and the template needs text. "
            f"{use} text prompts alone, or leave {option} out."
        )
    return [*prompt[:-1], {**prompt[-1], "content": written(content)}]
