"""The checkpoint of a run that is exported."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.record.checkpoints import checkpoints_of, fault_of, newest_good_checkpoint, step_of
from evenkeel.trainer.run.record.directory import check_is_run
from evenkeel.trainer.run.record.files import CONFIG, TRAINER_STATE, StateRecord, read_record
from evenkeel.trainer.run.record.manifest import read_manifest
from evenkeel.trainer.run.record.run_record import RunRecord

BEST = "best"
"""``--checkpoint best``: the one that ``evaluation.keep_best`` kept."""

_WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_ADAPTER = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True)
class Source:
    """One checkpoint with what is known of its run."""

    run: RunRecord
    checkpoint: Path

    @cached_property
    def record(self) -> dict[str, Any]:
        """The run's manifest."""
        return read_manifest(self.run.path)

    @property
    def step(self) -> int:
        """Optimizer steps that the weights were trained for."""
        return step_of(self.checkpoint)

    @property
    def is_adapter(self) -> bool:
        """Whether the checkpoint holds an adapter, not whole weights; a `Refusal` where it holds neither."""
        if any((self.checkpoint / name).exists() for name in _WHOLE):
            return False
        if any((self.checkpoint / name).exists() for name in _ADAPTER):
            return True
        raise Refusal(
            f"{self.checkpoint} has no whole weights. Resume it for one step with fsdp_state_dict_type: "
            "FULL_STATE_DICT (FSDP) or zero3_save_16bit_model: true (ZeRO-3), and export that checkpoint."
        )


def find_source(folder: Path, wanted: str | None, *, trusts_code: bool = False) -> Source:
    """The requested checkpoint, its files verified.

    Args:
        folder: a run's directory, or one of its checkpoints.
        wanted: a step, `BEST`, or ``None`` for the newest good one.
        trusts_code: the caller trusts the model's own code; that the run's file does is not enough.

    Raises:
        Refusal: there is no such run or checkpoint, its files have changed since they were saved, or its configuration
            or manifest cannot be read.
    """
    if folder.name.startswith("checkpoint-") and (folder.parent / CONFIG).is_file() and wanted is None:
        folder, wanted = folder.parent, folder.name.removeprefix("checkpoint-")
    check_is_run(folder)
    checkpoints = checkpoints_of(folder)
    if wanted == BEST:
        newest = checkpoints[0] / TRAINER_STATE if checkpoints else None
        state = read_record(newest, StateRecord) if newest and newest.is_file() else {}
        if state.get("best_model_checkpoint") is None:
            raise Refusal(f"{folder} kept no best checkpoint. Name a step by --checkpoint.")
        wanted = str(step_of(Path(state["best_model_checkpoint"])))
    if wanted is None:
        found, _ = newest_good_checkpoint(folder)
        if found is None:
            raise Refusal(f"{folder} has no complete checkpoint, so there is nothing to export.")
    else:
        found = folder / f"checkpoint-{wanted}"
        if found not in checkpoints:
            steps = ", ".join(str(step_of(path)) for path in reversed(checkpoints)) or "none"
            raise Refusal(f"{folder} has no checkpoint {wanted!r}. Its steps: {steps}.")
        if fault := fault_of(found):
            raise Refusal(f"{found} is broken: {fault}. Without --checkpoint the newest good one is exported.")
    source = Source(RunRecord(folder), found)
    _ = source.record  # refused here
    if source.run.config.model.trust_remote_code and not trusts_code:
        what = "says model.trust_remote_code: true. Read the model's code, then give --trust-remote-code."
        raise Refusal(f"{folder / CONFIG} {what}")
    return source
