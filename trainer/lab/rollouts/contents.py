"""The contents of the page: counts of all rollouts, and the groups that are shown."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenkeel.errors import Refusal
from evenkeel.trainer.evaluation.differences import VERDICT_OF
from evenkeel.trainer.lab.rollouts.tokens import Decode, WeighedTokens, token_pieces
from evenkeel.trainer.run.record.files import ROLLOUTS
from evenkeel.trainer.run.record.rollouts import RecordedRollouts

COLUMNS = ("row", "step", "group", "num_tokens", "correct")
"""Columns that are read of all batches; `RecordedRollouts` orders by the row."""
LONGEST_TEXT = 6_000
"""Characters of a text that are shown."""
LONGEST_SHOWN = 1_000
"""Tokens of a completion that are shown; the rest is cut off, and the page says how many."""
Row = dict[str, Any]


@dataclass(frozen=True)
class BatchSummary:
    """One rollout batch.

    Attributes:
        step: the optimizer step that follows its generation, from 1.
        groups: (number of the group, its rows, tokens of its completions) each.
        verdicts: right, wrong, unscored → rows.
    """

    number: int
    step: int
    rows: int
    groups: list[tuple[int, int, int]]
    verdicts: dict[str, int]


@dataclass(frozen=True)
class Contents:
    """Everything on the page.

    Attributes:
        groups: the groups that are shown, in the form that `script.js` reads.
        scored: whether π_old was recorded for all rollouts shown.
        weights_note: the meaning of advantage × weight on this page.
    """

    batches: list[BatchSummary]
    groups: list[dict[str, Any]]
    scored: bool
    weights_note: str

    @property
    def rollouts(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict → rollouts of all batches."""
        return {name: sum(batch.verdicts[name] for batch in self.batches) for name in self.batches[0].verdicts}


def contents_of(
    recorded: RecordedRollouts, weigh: WeighedTokens, decode: Decode | None, most_rollouts: int, most_tokens: int
) -> Contents:
    """The contents, from `COLUMNS` of every batch and all columns of the batches with a group that is shown.

    Args:
        decode: token ids → text; ``None`` without a tokenizer: the text is not split into tokens.
    """
    numbers = list(recorded.files)
    tables = zip(numbers, recorded.batches(COLUMNS), strict=True)
    batches = [summary_of(number, table) for number, table in tables if len(table)]
    if not batches:
        raise Refusal(f"{recorded.run / ROLLOUTS} has files without rollouts.")
    chosen = chosen_groups(batches, most_rollouts, most_tokens)
    groups = [_shown(rows, weigh, decode) for rows in _rows_of(recorded, chosen)]
    scored = all(rollout["probs"] is not None for group in groups for rollout in group["rollouts"])
    return Contents(batches, groups, scored, weigh.note)


def summary_of(number: int, table: Any) -> BatchSummary:
    """The counts of a rollout batch, from the columns `COLUMNS`."""
    labels, which = np.unique(table.column("group").to_numpy(), return_inverse=True)
    sums = np.bincount(which, table.column("num_tokens").to_numpy()).astype(int).tolist()
    verdicts = Counter(VERDICT_OF[correct] for correct in table.column("correct").to_pylist())
    return BatchSummary(
        number,
        int(table.column("step")[0].as_py()) + 1,
        len(table),
        list(zip(labels.tolist(), np.bincount(which).tolist(), sums, strict=True)),
        {verdict: verdicts[verdict] for verdict in VERDICT_OF.values()},
    )


def chosen_groups(batches: Sequence[BatchSummary], most_rollouts: int, most_tokens: int) -> list[tuple[int, int]]:
    """(batch, group) of at most ``most_rollouts`` and ``most_tokens``, or one group, ordered by batch.

    In the order of a hash of batch and group: a uniform draw without replacement that depends on nothing else, so that
    the same files always give the same page.
    """

    def drawn(key: tuple[int, int]) -> bytes:
        return hashlib.blake2b(f"{key[0]} {key[1]}".encode(), digest_size=8).digest()

    sizes = {(batch.number, group): (rows, tokens) for batch in batches for group, rows, tokens in batch.groups}
    chosen: list[tuple[int, int]] = []
    rollouts = tokens = 0
    for key in sorted(sizes, key=drawn):
        rows, written = sizes[key]
        rollouts, tokens = rollouts + rows, tokens + min(written, rows * LONGEST_SHOWN)
        if chosen and (rollouts > most_rollouts or tokens > most_tokens):
            break
        chosen.append(key)
    return sorted(chosen)


def _rows_of(recorded: RecordedRollouts, chosen: Sequence[tuple[int, int]]) -> Iterator[list[Row]]:
    import pyarrow
    from pyarrow import compute

    wanted: dict[int, list[int]] = defaultdict(list)
    for number, group in chosen:
        wanted[number].append(group)
    for of_batch, table in zip(wanted.values(), recorded.batches(numbers=list(wanted)), strict=True):
        rows: dict[int, list[Row]] = defaultdict(list)
        for row in table.filter(compute.is_in(table.column("group"), pyarrow.array(of_batch))).to_pylist():
            rows[row["group"]].append(row)
        yield from (rows[group] for group in of_batch)


def _shown(rows: list[Row], weigh: WeighedTokens, decode: Decode | None) -> dict[str, Any]:
    first = rows[0]
    return {
        "batch": first["batch"],
        "step": first["step"] + 1,
        "group": first["group"],
        "prompt": _cut(first["prompt"]),
        "reference": _cut(first["reference"]),
        "rollouts": [_rollout(row, weighed, decode) for row, weighed in zip(rows, weigh.of_group(rows), strict=True)],
    }


def _rollout(row: Row, weighed: float | list[float], decode: Decode | None) -> dict[str, Any]:
    ids, logps = row["completion_ids"][:LONGEST_SHOWN], row["old_logps"]
    names = [name.removesuffix("/reason") for name in row if name.endswith("/reason")]
    others = json.loads(row["others"] or "{}")
    others.pop("edited", None)
    said = [[name, row.get(f"{name}/answer"), row[f"{name}/reason"]] for name in names]
    return {
        "row": row["row"],
        "verdict": VERDICT_OF[row["correct"]],
        "reward": _short(row["reward"]),
        "rewards": {name.removeprefix("rewards/"): _short(x) for name, x in row.items() if name.startswith("rewards/")},
        "advantage": _short(row["advantage"]),
        "length": row["num_tokens"],
        "truncated": row["truncated"],
        "said": [[name, _cut(answer), _cut(reason)] for name, answer, reason in said if answer or reason],
        "others": _cut(json.dumps(others)) if others else None,
        "pieces": None if decode is None else token_pieces(ids, decode),
        "text": _cut(row["completion"]) if decode is None else None,
        "counted": row["mask"] and row["mask"][:LONGEST_SHOWN],
        "left_out": len(row["completion_ids"]) - len(ids),
        "weighed": [_short(x) for x in weighed[:LONGEST_SHOWN]] if isinstance(weighed, list) else _short(weighed),
        "probs": logps and [_short(math.exp(x)) for x in logps[:LONGEST_SHOWN]],
    }


def _short(value: float | None) -> float | None:
    """Four digits; ``None`` for NaN and infinities, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… [{len(text) - LONGEST_TEXT:,} characters more]"


def as_script_data(groups: list[dict[str, Any]]) -> str:
    """JSON for a script element: no text in it can end the element or start a comment."""
    text = json.dumps(groups, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
