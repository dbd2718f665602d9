"""A checkpoint for which there is no room: named with its bytes and its disk, left out, and the run goes on."""

import errno
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.run.callbacks.checkpoints import CheckpointManifest
from evenkeel.trainer.step.guards import is_full
from evenkeel.trainer.step.options import Guards
from tests.trainer.step.test_faults import lengths_modulo_three

LIMIT = 40_000
"""Bytes a file may have: the weights take more, and so does the optimizer."""


class Limited(RLVRTrainer):
    """At step 2 the kernel lets no file grow beyond `LIMIT`, as a quota would."""

    limits: bool

    def _save_whole_checkpoint(self, model: Any, trial: Any) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self.state.global_step == 2 and self.limits:
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, most))
        try:
            super()._save_whole_checkpoint(model, trial)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def trained(model: Path, folder: Path, *, limits: bool) -> tuple[Limited, list[str]]:
    arguments = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4,
        max_steps=3,
        learning_rate=1e-2,
        save_steps=1,
        report_to="none",
    )
    told: list[str] = []
    trainer = Limited(
        str(model),
        lengths_modulo_three,
        arguments,
        Dataset.from_dict({"prompt": ["a b", "b a", "a a", "b b"]}),
        guards=Guards(folder / "faults", report=told.append),
    )
    trainer.limits = limits
    trainer.add_callback(CheckpointManifest(None, trainer.accelerator.wait_for_everyone))
    trainer.train()
    return trainer, told


def test_what_fails_while_it_is_written_is_deleted_and_said(tiny_model: Path, tmp_path: Path):
    trainer, told = trained(tiny_model, tmp_path / "limited", limits=True)
    assert [path.name for path in sorted((tmp_path / "limited").glob("checkpoint-*"))] == [
        "checkpoint-1",
        "checkpoint-3",
    ]
    (said,) = told
    assert said.startswith("checkpoint-2 was not saved")
    assert trainer.parts.disk.left_out == 2
    free, nothing = trained(tiny_model, tmp_path / "free", limits=False)
    assert nothing == []
    for one, other in zip(trainer.model.parameters(), free.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_full_disks_are_known_by_their_errors(tmp_path: Path):
    with pytest.raises(RuntimeError) as torchs:
        torch.save(torch.zeros(1 << 20), "/dev/full")
    assert is_full(torchs.value)
    with pytest.raises(OSError, match="No space") as plain, Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"x")
    assert is_full(plain.value)
    assert is_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not is_full(OSError(errno.EACCES, "Permission denied"))
    assert not is_full(ValueError("shape mismatch"))
