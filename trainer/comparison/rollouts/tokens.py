"""The text of each token of a completion, and how strongly it was trained: advantage × weight, probability."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.signals import Signals, token_signals
from evenkeel.trainer.algorithms.strategies import TAUGHT, Strategies

Decode = Callable[[Sequence[int]], str]
_UNFINISHED = "\ufffd"
"""What decoders write for the first bytes of a character whose last ones are in the next token."""


def token_pieces(ids: Sequence[int], decode: Decode) -> list[str]:
    """The text of each token, which put together are ``decode(ids)``.

    A character that consists of several tokens is the text of the last one; the others are empty. Text that a decoder
    inserts between two tokens belongs to the second.
    """
    pieces: list[str] = []
    start = read = 0
    for end in range(1, len(ids) + 1):
        before, now = decode(ids[start:read]), decode(ids[start:end])
        if len(now) > len(before) and (end == len(ids) or not now.endswith(_UNFINISHED)):
            pieces.append(now[len(before) :])
            start, read = read, end
        else:
            pieces.append("")
    return pieces


class WeighedTokens:
    """``advantage × weight`` of the tokens of a group, by the run's own token weight.

    Attributes:
        note: what the values are, or why they are those of the advantages alone.
    """

    def __init__(self, strategies: Strategies, max_steps: int) -> None:
        self.strategies, self.weight = replace(strategies, coefficient=None), strategies.token_weight
        self.max_steps = max_steps
        self.note = _note(self.weight, strategies.coefficient)

    def of_group(self, rows: Sequence[dict[str, Any]]) -> list[float | list[float]]:
        """Of each row one number, or one for each token where they differ.

        Where the weight needs what was not recorded the advantages alone are returned, and `note` says so.
        """
        mask, lengths = _mask(rows), [len(row["completion_ids"]) for row in rows]
        advantages = torch.stack(
            [
                torch.full((mask.shape[1],), row["advantage"])
                if row["advantages"] is None
                else _padded(row["advantages"], mask.shape[1])
                for row in rows
            ]
        )
        if self.weight is None:
            values = advantages
        elif (absent := self._absent(rows)) is None:
            signals = self._signals(rows, mask, advantages)
            values = update.token_factors(self.strategies, signals, "on recorded rollouts").weighted(advantages)
        else:
            self.note = f"The advantage alone: token weight {self.weight.name!r} needs {absent}."
            values = advantages
        found = [row[:length].tolist() for row, length in zip(values * mask, lengths, strict=True)]
        return [row[0] if len(set(row)) == 1 else row for row in found]

    def _absent(self, rows: Sequence[dict[str, Any]]) -> str | None:
        assert self.weight is not None
        for signal in [each for each in TAUGHT if each in self.weight.signals]:
            return f"{signal}, which no run records"
        asked = {"old_logps": {"probs", "old_logps"}, "entropies": {"entropies"}}
        for column, signals in asked.items():
            if signals & {*self.weight.signals} and any(row[column] is None for row in rows):
                missing = {"old_logps": "π_old", "entropies": "entropies"}[column]
                return f"{missing}, which this run did not record (logging.rollout_scores: true does)"
        return None

    def _signals(self, rows: Sequence[dict[str, Any]], mask: Tensor, advantages: Tensor) -> Signals:
        width = mask.shape[1]
        scores = {
            name: torch.stack([_padded(row[name], width) for row in rows])
            if all(row[name] is not None for row in rows)
            else None
            for name in ("old_logps", "entropies")
        }
        return token_signals(
            logps=scores["old_logps"],
            old_logps=scores["old_logps"],
            teacher_logps=None,
            teacher_contrast=None,
            advantages=advantages,
            mask=mask,
            entropies=scores["entropies"],
            completion_ids=torch.stack([_padded(row["completion_ids"], width).long() for row in rows]),
            groups=torch.tensor([row["group"] for row in rows]),
            judged=torch.tensor([row["reward"] is not None for row in rows]),
            row_keys=None,
            step=rows[0]["step"],
            max_steps=self.max_steps,
        )


def _note(weight: Strategy | None, coefficient: Strategy | None) -> str:
    if weight is None:
        said = "The advantage; this run gives all tokens the same weight."
    elif weight.traits.depends_on_the_cut:
        said = (
            f"Advantage × weight, recomputed by {weight.name!r} over the group alone: in training it saw the whole "
            "micro-batch, and its weights differed."
        )
    else:
        said = f"Advantage × weight, recomputed by {weight.name!r} from the recorded π_old."
    return (
        said
        if coefficient is None
        else f"{said} In training it was also multiplied by the coefficient {coefficient.name!r}."
    )


def _mask(rows: Sequence[dict[str, Any]]) -> Tensor:
    """(rows, longest completion), 1 where the loss counts the token."""
    width = max(1, max(len(row["completion_ids"]) for row in rows))
    counted = [[1.0] * len(row["completion_ids"]) if row["mask"] is None else row["mask"] for row in rows]
    return torch.stack([_padded(row, width) for row in counted]).long()


def _padded(values: Sequence[float], width: int) -> Tensor:
    return torch.nn.functional.pad(torch.tensor(values, dtype=torch.float32), (0, width - len(values)))
