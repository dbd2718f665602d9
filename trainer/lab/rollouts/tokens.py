"""The text of each token of a completion, its advantage × weight, and its probability."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.signals import Signals, token_signals
from evenkeel.trainer.algorithms.strategies import TAUGHT, Strategies

Decode = Callable[[Sequence[int]], str]
_UNFINISHED = "\ufffd"
"""Written by decoders for the first bytes of a character that the next token completes."""


def token_pieces(ids: Sequence[int], decode: Decode) -> list[str]:
    """The text of each token; joined they are ``decode(ids)``.

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
        note: the meaning of the values, or why they are the advantages alone.
    """

    def __init__(self, strategies: Strategies, max_steps: int) -> None:
        self.strategies, self.weight = replace(strategies, coefficient=None), strategies.token_weight
        self.max_steps = max_steps
        self.note = _note(self.weight, strategies.coefficient)

    def of_group(self, rows: Sequence[dict[str, Any]]) -> list[float | list[float]]:
        """For each row one number, or one for each token where they differ.

        Where the weight needs what was not recorded the advantages alone are returned, and `note` says so.
        """
        ids, mask = completions_of(rows)
        one_each = [[row["advantage"]] * ids.shape[1] for row in rows]
        values = padded([row["advantages"] or one for row, one in zip(rows, one_each, strict=True)])
        if self.weight is not None and (absent := self._absent(rows)):
            self.note = f"The advantage alone: token weight {self.weight.name!r} needs {absent}."
        elif self.weight is not None:
            signals = self._signals(rows, ids, mask, values)
            values = update.token_factors(self.strategies, signals, "on recorded rollouts").weighted(values)
        found = [each[: len(row["completion_ids"])].tolist() for each, row in zip(values * mask, rows, strict=True)]
        return [row[0] if len(set(row)) == 1 else row for row in found]

    def _absent(self, rows: Sequence[dict[str, Any]]) -> str | None:
        assert self.weight is not None
        for signal in [each for each in TAUGHT if each in self.weight.signals]:
            return f"{signal}, which no run records"
        recorded = {"old_logps": ("π_old", {"probs", "old_logps"}), "entropies": ("entropies", {"entropies"})}
        for column, (name, signals) in recorded.items():
            if signals & {*self.weight.signals} and any(row[column] is None for row in rows):
                return f"{name}, which this run did not compute for its rollouts"
        return None

    def _signals(self, rows: Sequence[dict[str, Any]], ids: Tensor, mask: Tensor, advantages: Tensor) -> Signals:
        scores = {
            name: padded([row[name] for row in rows]) if all(row[name] is not None for row in rows) else None
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
            completion_ids=ids,
            groups=torch.tensor([row["group"] for row in rows]),
            scored=torch.tensor([row["reward"] is not None for row in rows]),
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
    if coefficient is not None:
        said += f" In training it was also multiplied by the coefficient {coefficient.name!r}."
    return said


def completions_of(rows: Sequence[dict[str, Any]]) -> tuple[Tensor, Tensor]:
    """(N, T) token ids of recorded completions, padded on the right, and the mask of those that the loss counts."""
    counted = [row["mask"] or [1] * len(row["completion_ids"]) for row in rows]
    return padded([row["completion_ids"] for row in rows], torch.long), padded(counted, torch.long)


def padded(rows: Sequence[Sequence[float]], dtype: torch.dtype = torch.float32) -> Tensor:
    """(N, T) of rows of different lengths, 0 after their ends."""
    return pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], batch_first=True)
