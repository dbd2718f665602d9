"""Records of a rollout batch's rows: prompt, completion, verdict, rewards, advantage.

Taken once the advantages are final, before the rows are shuffled; the step is not changed.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.signals import weighted_sum
from evenkeel.trainer.step.metrics import per_response
from evenkeel.trainer.step.rollout import Rollout, loss_mask, verdicts
from evenkeel.trainer.step.setup import Setup

LONGEST_REFERENCE = 2_000
"""Characters: the tests of a programming task can be megabytes, the same in every row."""
Columns = dict[str, list[Any]]


class Recorder:
    """Passes each training rollout batch on to `sink`, if there is one.

    Attributes:
        sink: takes the number of the batch in the run and this rank's rows, column → values.
        rows_per_batch: rows of all ranks to record, rounded up to whole groups; ``None`` = all.
    """

    sink: Callable[[int, Columns], None] | None = None
    rows_per_batch: int | None = None

    def __init__(self, setup: Setup) -> None:
        self.ranks, self.tokenizer = setup.ranks, setup.tokenizer
        self.group_size, self.ends = setup.args.num_generations, setup.ends
        self.reward_names, self.reward_weights = setup.reward_names, setup.reward_weights

    def __call__(self, rollout: Rollout) -> None:
        """Record a rollout batch whose advantages are final."""
        if self.sink is None:
            return
        num_groups = len(rollout.rows) * self.ranks.count // self.group_size
        groups = recorded_groups(num_groups, self.group_size, self.rows_per_batch)
        first = self.ranks.index * len(rollout.rows)
        rows = [row for row in range(len(rollout.rows)) if (first + row) // self.group_size in groups]
        columns = self.columns(rollout)
        kept = {name: [values[row] for row in rows] for name, values in columns.items()}
        self.sink(rollout.position.rollout, kept)

    def columns(self, rollout: Rollout) -> Columns:
        """Columns of this rank's rows; trainer/lab/README.md describes each."""
        batch, tokenizer = rollout.batch, self.tokenizer
        ids = completion_token_ids(batch, tokenizer.pad_token_id)
        prompts = [
            row[seen.bool()].tolist() for row, seen in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
        ]
        first = self.ranks.index * len(rollout.rows)
        places = [first + row for row in range(len(rollout.rows))]
        passes = {**rollout.scores, **batch}  # where TRL or a strategy asked for them
        return {
            "batch": [rollout.position.rollout] * len(ids),
            "step": [rollout.position.step] * len(ids),
            "row": places,
            "group": [place // self.group_size for place in places],
            "prompt": tokenizer.batch_decode(prompts),
            "prompt_ids": prompts,
            "reference": [_reference(row) for row in rollout.rows],
            "completion": tokenizer.batch_decode(ids, skip_special_tokens=True),
            "completion_ids": ids,
            "num_tokens": list(map(len, ids)),
            "truncated": [bool(row) and row[-1] not in self.ends for row in ids],
            "mask": _uncounted(rollout.mask, ids),
            **self._scores(rollout),
            "advantage": per_response(batch["advantages"], loss_mask(batch)).tolist(),
            "advantages": _per_token(batch["advantages"] if batch["advantages"].dim() == 2 else None, ids),
            "old_logps": _per_token(passes.get("old_per_token_logps"), ids),
            "entropies": _per_token(passes.get("old_entropies"), ids),
        }

    def _scores(self, rollout: Rollout) -> Columns:
        """Rewards of each function, their weighted sum, the verdict, and the columns that the functions logged."""
        rows, logged = len(rollout.rows), rollout.columns
        per_function = rollout.rewards_per_function[self.ranks.index * rows :][:rows]
        scored = {f"rewards/{name}": per_function[:, n] for n, name in enumerate(self.reward_names)}
        scored["reward"] = weighted_sum(per_function, self.reward_weights)
        said = {name: values for name, values in logged.items() if name.endswith(("/answer", "/reason"))}
        right = verdicts(logged)
        others = {name: values for name, values in logged.items() if name not in said and name != "correct"}
        return {
            "correct": [None] * rows if right is None else [None if x != x else bool(x) for x in right.tolist()],
            **{name: [None if x != x else x for x in values.tolist()] for name, values in scored.items()},
            **{name: [None if x is None else str(x) for x in values] for name, values in said.items()},
            "others": [_as_json({name: values[row] for name, values in others.items()}) for row in range(rows)],
        }


def recorded_groups(num_groups: int, group_size: int, rows: int | None) -> set[int]:
    """The groups of a batch to record: all, or as many as hold ``rows`` rows, evenly spread, the first included."""
    wanted = num_groups if rows is None else min(num_groups, -(-rows // group_size))
    return {place * num_groups // wanted for place in range(wanted)}


def completion_token_ids(batch: dict[str, Any], padding: int) -> list[list[int]]:
    """The tokens of each completion, also where TRL has cleared the mask (truncated completions)."""
    lengths = batch["completion_mask"].sum(1)
    filled = (batch["completion_ids"] != padding).long()
    last = filled.shape[1] - filled.flip(1).argmax(1)
    lengths = torch.where(lengths > 0, lengths, torch.where(filled.any(1), last, 0))
    rows = zip(batch["completion_ids"].tolist(), lengths.tolist(), strict=True)
    return [row[:length] for row, length in rows]


def _uncounted(mask: Tensor, ids: list[list[int]]) -> list[list[bool] | None]:
    """Tokens that the loss counts, of each row; ``None`` where it counts all, the usual case."""
    cut = [row[: len(kept)] for row, kept in zip(mask.bool().tolist(), ids, strict=True)]
    return [None if all(row) else row for row in cut]


def _per_token(values: Tensor | None, ids: list[list[int]]) -> list[list[float] | None]:
    if values is None:
        return [None] * len(ids)
    return [row[: len(kept)] for row, kept in zip(values.float().tolist(), ids, strict=True)]


def _reference(row: dict[str, Any]) -> str | None:
    value = row.get("reference")
    text = value if isinstance(value, str) or value is None else _as_json(value)
    return None if text is None else text[:LONGEST_REFERENCE]


def _as_json(value: Any) -> str | None:
    return json.dumps(value, ensure_ascii=False, default=str) if value else None
