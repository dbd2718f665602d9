"""What a rollout batch was, row by row: what the policy saw and wrote, the verdicts, the rewards, the advantages.

Rows are read off when their advantages are final and before anything is shuffled; nothing of the step changes.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.step.observers import per_response
from trainer.step.rollout_batches import rollout_number
from trainer.step.rollout_signals import loss_mask, old_score, verdicts, weighted_sum

LONGEST_REFERENCE = 2_000
"""Characters: the tests of a programming task can be megabytes, the same in every row."""
Columns = dict[str, list[Any]]


class RolloutRecorder:
    """To be mixed in front of `RLVRTrainer`: hands each training rollout batch to ``rollout_sink``, if there is one.

    Attributes:
        rollout_sink: takes the number of the batch in the run and this rank's rows, column → values.
        rollouts_per_batch: of so many rows, rounded up to whole groups that are spread evenly over the batch, something
            is recorded; ``None`` = of all. On several ranks each hands over its rows of the same groups.
        records_scores: record log π_old and entropies also where TRL does not score the batch: one forward pass more.
    """

    rollout_sink: Callable[[int, Columns], None] | None = None
    rollouts_per_batch: int | None = None
    records_scores: bool = False
    _rolled_out: list[dict[str, Any]]

    def _rows_to_roll_out(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self._rolled_out = super()._rows_to_roll_out(inputs)  # type: ignore[misc]
        return self._rolled_out

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        trainer: Any = self
        if self.rollout_sink is None or not trainer.model.training:
            return batch
        number, inputs = rollout_number(trainer), self._rolled_out  # a prompt sampler may have chosen others
        ranks, group_size = trainer.accelerator.num_processes, trainer.num_generations
        groups = recorded_groups(len(inputs) * ranks // group_size, group_size, self.rollouts_per_batch)
        first = trainer.accelerator.process_index * len(inputs)
        rows = [row for row in range(len(inputs)) if (first + row) // group_size in groups]
        scores = self._scores(batch)
        self.rollout_sink(number, rollout_records(trainer, inputs, {**batch, **scores}, rows, number))
        return batch

    def _scores(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        if not self.records_scores:
            return {}
        names = ("old_per_token_logps", "old_entropies")
        found = {name: old_score(self, batch, name) for name in names}  # type: ignore[arg-type]
        batch.pop("scores", None)
        return found


def recorded_groups(num_groups: int, group_size: int, rows: int | None) -> set[int]:
    """Which groups of a batch are recorded: all, or as many as hold ``rows`` rows, evenly spread from the first on."""
    wanted = num_groups if rows is None else min(num_groups, -(-rows // group_size))
    return {place * num_groups // wanted for place in range(wanted)}


def rollout_records(
    trainer: Any, inputs: Sequence[dict[str, Any]], batch: dict[str, Any], rows: Sequence[int], number: int
) -> Columns:
    """The columns of ``rows`` of this rank's rollout batch; see trainer/comparison/README.md for what each one is."""
    ids = completion_token_ids(batch, trainer._tokenizer.pad_token_id)
    prompts = [row[seen.bool()].tolist() for row, seen in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]
    first = trainer.accelerator.process_index * len(inputs)
    ends = {*trainer.eos_token_ids, trainer._tokenizer.pad_token_id}
    places = [first + row for row in range(len(inputs))]
    columns: Columns = {
        "batch": [number] * len(ids),
        "step": [trainer.state.global_step] * len(ids),
        "row": places,
        "group": [place // trainer.num_generations for place in places],
        "prompt": trainer._tokenizer.batch_decode(prompts),
        "prompt_ids": prompts,
        "reference": [_reference(row) for row in inputs],
        "completion": trainer._tokenizer.batch_decode(ids, skip_special_tokens=True),
        "completion_ids": ids,
        "num_tokens": list(map(len, ids)),
        "truncated": [bool(row) and row[-1] not in ends for row in ids],
        "mask": _uncounted(loss_mask(batch), ids),
        **_judgements(trainer, len(ids)),
        "advantage": per_response(batch["advantages"], loss_mask(batch)).tolist(),
        "advantages": _per_token(batch["advantages"] if batch["advantages"].dim() == 2 else None, ids),
        "old_logps": _per_token(batch.get("old_per_token_logps"), ids),
        "entropies": _per_token(batch.get("old_entropies"), ids),
    }
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def completion_token_ids(batch: dict[str, Any], padding: int) -> list[list[int]]:
    """The tokens of each completion, those too that no loss counts: TRL blanks the mask of truncated ones."""
    lengths = batch["completion_mask"].sum(1)
    filled = (batch["completion_ids"] != padding).long()
    last = filled.shape[1] - filled.flip(1).argmax(1)
    lengths = torch.where(lengths > 0, lengths, torch.where(filled.any(1), last, 0))
    return [row[:length] for row, length in zip(batch["completion_ids"].tolist(), lengths.tolist(), strict=True)]


def _judgements(trainer: Any, rows: int) -> Columns:
    """Rewards of each function, their weighted sum, the verdict, and what the functions said of each row."""
    first = trainer.accelerator.process_index * rows
    per_function: Tensor = trainer._rewards_per_function[first : first + rows]
    judged = {f"rewards/{name}": per_function[:, n] for n, name in enumerate(trainer.reward_func_names)}
    judged["reward"] = weighted_sum(per_function, trainer.reward_weights)
    logged: Columns = trainer._columns
    said = {name: values for name, values in logged.items() if name.endswith(("/answer", "/reason"))}
    right = verdicts(logged)
    others = {name: values for name, values in logged.items() if name not in said and name != "correct"}
    return {
        "correct": [None] * rows if right is None else [None if x != x else bool(x) for x in right.tolist()],
        **{name: [None if x != x else x for x in values.tolist()] for name, values in judged.items()},
        **{name: [None if x is None else str(x) for x in values] for name, values in said.items()},
        "others": [_as_json({name: values[row] for name, values in others.items()}) for row in range(rows)],
    }


def _uncounted(mask: Tensor, ids: list[list[int]]) -> list[list[bool] | None]:
    """Which tokens the loss counts; ``None`` where it counts all, as it nearly always does."""
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
