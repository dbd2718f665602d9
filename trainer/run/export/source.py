"""Which checkpoint of a run is exported, and in which form its weights lie there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rewards.registry import Refusal
from trainer.run.checkpoints import fault_of, step_of, writes_manifests
from trainer.run.config import RunConfig
from trainer.run.files import CONFIG, TRAINER_STATE, BestRecord, read_record
from trainer.run.manifest import read_manifest
from trainer.run.record import RunRecord

Form = Literal["model", "adapter", "zero", "fsdp"]
BEST = "best"
"""``--checkpoint best``: the one that ``evaluation.keep_best`` kept."""

_WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_ADAPTER = ("adapter_model.safetensors", "adapter_model.bin")


class ExportError(Refusal):
    """A policy that cannot be exported as asked; the message says what to do instead."""


@dataclass(frozen=True)
class Source:
    """One checkpoint with what is known of its run.

    Attributes:
        record: the run's manifest.
    """

    run: Path
    checkpoint: Path
    config: RunConfig
    record: dict[str, Any]

    @property
    def step(self) -> int:
        """Optimizer steps behind the weights."""
        return step_of(self.checkpoint)

    @property
    def form(self) -> Form:
        """How the weights lie in the checkpoint: whole, as an adapter, or in the shards of DeepSpeed or FSDP.

        Raises:
            ExportError: there are none.
        """
        if any((self.checkpoint / name).exists() for name in _WHOLE):
            return "model"
        if any((self.checkpoint / name).exists() for name in _ADAPTER):
            return "adapter"
        if any(self.checkpoint.glob("pytorch_model_fsdp_*/.metadata")):
            return "fsdp"
        if any(path.is_dir() for path in self.checkpoint.glob("global_step*")):
            return "zero"
        raise ExportError(
            f"{self.checkpoint} holds no weights: neither a model, nor an adapter, nor shards of DeepSpeed or FSDP. "
            "Name another checkpoint with --checkpoint."
        )


def find_source(run: Path, checkpoint: str | None) -> Source:
    """The checkpoint of ``run`` that is meant, its files verified.

    Args:
        run: a run's directory, or one of its checkpoints.
        checkpoint: a step, `BEST`, or ``None`` for the newest good one.

    Raises:
        ExportError: there is no such run or checkpoint, or its files are not what was saved.
    """
    if run.name.startswith("checkpoint-") and RunRecord(run.parent).is_run and checkpoint is None:
        run, checkpoint = run.parent, run.name.removeprefix("checkpoint-")
    record = RunRecord(run)
    if not record.is_run:
        raise ExportError(f"{run} is no directory of a run: it holds no {CONFIG}. Name one, such as runs/quickstart.")
    found = record.newest_checkpoint().checkpoint if checkpoint is None else _named(run, checkpoint)
    if found is None:
        raise ExportError(f"{run} holds no complete checkpoint, so there is nothing to export.")
    return Source(run, found, record.config, read_manifest(run))


def _named(run: Path, wanted: str) -> Path:
    there = RunRecord(run).checkpoints
    if wanted == BEST:
        return _best(run, there)
    found = run / f"checkpoint-{wanted}"
    if found not in there:
        steps = ", ".join(str(step_of(path)) for path in reversed(there)) or "none"
        raise ExportError(f"{run} holds no checkpoint {wanted!r}. Its steps: {steps}.")
    if fault := fault_of(found, manifest_expected=writes_manifests(run)):
        raise ExportError(f"{found} is broken: {fault}. Without --checkpoint the newest good one is exported.")
    return found


def _best(run: Path, there: list[Path]) -> Path:
    newest = there[0] / TRAINER_STATE if there else None
    state = read_record(newest, BestRecord, "Name a step.") if newest and newest.is_file() else {}
    best = state.get("best_model_checkpoint")
    if best is None:
        raise ExportError(
            f"{run} kept no best checkpoint: its configuration has no `evaluation: {{keep_best: …}}`, or nothing has "
            "been evaluated yet. Leave --checkpoint out for the newest, or name a step."
        )
    return _named(run, str(step_of(Path(best))))
