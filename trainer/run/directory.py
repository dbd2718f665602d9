"""The directory of one run: which one it is, what is written there, and where a run that stopped goes on."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewards.registry import Refusal
from trainer.run.checkpoints import newest_good_checkpoint
from trainer.run.config import RunConfig, load_config
from trainer.run.config.dotted import flattened
from trainer.run.manifest import read_manifest
from trainer.run.records import DamagedFileError, StateRecord, SummaryRecord, read_record

MAY_CHANGE = ("name", "output_dir", "num_processes", "evaluation", "logging", "stopping", "vllm")
"""Sections that may differ between a run and its continuation: they do not change what is trained."""
ENGINES_PLACE = tuple(f"vllm_{name}" for name in ("server_host", "server_port", "server_base_url", "server_timeout"))
"""Where vLLM answers: a job that is queued again gets other nodes."""
TRL_MAY_CHANGE = ("save_strategy", "save_steps", "save_total_limit", "logging_steps", *ENGINES_PLACE)
LENGTH = ("max_steps", "num_train_epochs")
"""May differ too, where the learning rate does not depend on how long the run is."""
CONSTANT = ("constant", "constant_with_warmup")


class ResumeError(Refusal):
    """A run that cannot be continued as asked; the message says what to do instead."""


def fresh_directory(output_dir: str | Path) -> Path:
    """Make and return ``output_dir``, or the first of ``output_dir-2``, ``-3``, … that does not exist yet.

    Nothing is overwritten, also where several runs start at once: a directory belongs to the run that made it.
    """
    first = Path(output_dir)
    for number in itertools.count(1):
        candidate = first if number == 1 else first.with_name(f"{first.name}-{number}")
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            continue
        return candidate
    raise AssertionError


def forget_fresh_directory(run: Path) -> None:
    """Delete the directory of a run that was refused before its first step, if nothing else has been put there."""
    for name in ("config.yaml", "manifest.json", "owner.lock", "wandb_run_id.txt", "seconds.json"):
        (run / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        run.rmdir()


def directories_of(output_dir: str | Path) -> list[Path]:
    """The directories of the runs of ``output_dir``, the oldest first: itself, ``-2``, ``-3``, …"""
    first = Path(output_dir)
    numbers = (path.name.removeprefix(f"{first.name}-") for path in first.parent.glob(f"{first.name}-*"))
    later = sorted(int(number) for number in numbers if number.isdigit())
    return [path for path in (first, *(first.with_name(f"{first.name}-{n}") for n in later)) if path.is_dir()]


def last_checkpoint(run: str | Path) -> Path:
    """The newest good checkpoint of ``run``; nothing is said of newer ones that are broken.

    Raises:
        ResumeError: there is none.
    """
    checkpoint = newest_good_checkpoint(Path(run)).checkpoint
    if checkpoint is None:
        raise ResumeError(f"There is no complete checkpoint in {run}, so nothing can be resumed.")
    return checkpoint


def is_trained(checkpoint: Path, max_steps: int) -> bool:
    """Whether nothing is left to train behind ``checkpoint``; ``max_steps`` ≤ 0 = as many as the run had planned."""
    instead = f"Rename {checkpoint} to go on from an older checkpoint: --resume auto takes the newest that is left."
    state = read_record(checkpoint / "trainer_state.json", StateRecord, instead)
    planned = max_steps if max_steps > 0 else state["max_steps"]
    return bool(state["global_step"] >= planned)


def is_summarised(run: Path) -> bool:
    """Whether ``run`` has its summary; one that is damaged is written anew."""
    try:
        read_record(run / "summary.json", SummaryRecord, "")
    except DamagedFileError:
        return False
    return True


def check_same_run(config: RunConfig, run: Path, world_size: int) -> None:
    """Refuse to continue ``run`` under settings that would train something else from its checkpoint on.

    Raises:
        ResumeError: naming every setting that differs, with both values, or another number of processes.
    """
    started = read_manifest(run)["world_size"]
    if started != world_size:
        raise ResumeError(
            f"{run} was trained on {started} processes and would go on on {world_size}: each process's random state "
            f"and share of the optimizer are in its checkpoint. Start {started} processes."
        )
    saved = load_config(run / "config.yaml").model_dump()
    current = config.model_dump()
    for section in MAY_CHANGE:
        saved.pop(section, None), current.pop(section, None)
    constant = current["trl"].get("lr_scheduler_type") in CONSTANT
    for key in (*TRL_MAY_CHANGE, *(LENGTH if constant else ())):
        saved["trl"].pop(key, None), current["trl"].pop(key, None)
    before, now = flattened(saved), flattened(current)
    changed = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    if changed:
        lines = [f"  {key}: {before.get(key, 'absent')!r} → {now.get(key, 'absent')!r}" for key in changed]
        raise ResumeError(
            f"{run} was started with other settings, and its checkpoint goes on only with its own:\n"
            + "\n".join(lines)
            + (
                "\nThe learning rate depends on how long the run is."
                if {*changed} & {f"trl.{k}" for k in LENGTH}
                else ""
            )
            + f"\nTake the changes back, resume with {run / 'config.yaml'}, or start a new run without --resume."
        )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a ``metrics.jsonl``; those of `damaged_lines` are passed over.

    Raises:
        DamagedFileError: it cannot be read at all.
    """
    return [entry for _, entry in _metrics_lines(path) if entry is not None]


def damaged_lines(path: Path) -> list[int]:
    """The numbers, from 1, of the lines of a ``metrics.jsonl`` that are no metrics: other hands have been there.

    A last line without its end is none of them: it was cut off when the run was killed.
    """
    return [number for number, entry in _metrics_lines(path) if entry is None]


def damage_in_words(path: Path, numbers: list[int]) -> str:
    """What a reader of a ``metrics.jsonl`` with these damaged lines says."""
    shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    lines = f"line {shown} holds" if len(numbers) == 1 else f"lines {shown} hold"
    return f"{path}: {lines} no metrics of a step, and {'is' if len(numbers) == 1 else 'are'} left out."


def _metrics_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    try:
        text = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise DamagedFileError(
            f"{path} cannot be read: {error.strerror}. Move it away; a run writes a new one."
        ) from error
    *whole, cut_off = text.split(b"\n")
    for number, line in enumerate([*whole, *([cut_off] if cut_off else [])], start=1):
        entry = _metrics_of(line)
        if entry is not None or number <= len(whole):
            yield number, entry


def _metrics_of(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("step"), int) or isinstance(entry["step"], bool):
        return None
    return entry if all(isinstance(value, int | float | None) for value in entry.values()) else None
