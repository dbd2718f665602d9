"""What the trainer adds to a micro-batch never waits for the device; a GPU would stand still each time.

Here the trainer's own parts; that no token weight, coefficient or schedule waits is held by
tests/trainer/algorithms/test_on_a_device.py.
"""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from evenkeel.trainer import RLVRTrainer
from tests.paths import ROOT
from tests.trainer.training import train

WAITS = {"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "cpu", "numpy", "nonzero", "masked_select"}
WAITS |= {"unique", "bincount", "new_tensor", "tensor", "as_tensor"}  # the last three copy numbers to the device
OURS = str(ROOT / "trainer")


class Waits(TorchFunctionMode):
    """Where in this project's trainer the host would wait for a device: ``file:function`` of each time."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.watching = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if self.watching and (name in WAITS or (name in ("__getitem__", "__setitem__") and _by_mask(args[1]))):
            frame = sys._getframe(1)
            while frame.f_back is not None and f"{Path(torch.__file__).parent}" in frame.f_code.co_filename:
                frame = frame.f_back
            if frame.f_code.co_filename.startswith(OURS):
                self.found.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")
        return function(*args, **(kwargs or {}))


def _by_mask(index: Any) -> bool:
    return any(
        isinstance(one, torch.Tensor) and one.dtype == torch.bool
        for one in (index if isinstance(index, tuple) else [index])
    )


def waits(model: Path, folder: Path, strategies: dict[str, Any], **settings: Any) -> list[str]:
    """Those of three optimizer steps of two micro-batches, outside of the making of rollout batches and their cuts."""
    mode = Waits()

    class Watched(RLVRTrainer):
        def training_step(self, *positional, **keywords):
            with mode:
                mode.watching = True
                loss = super().training_step(*positional, **keywords)
                mode.watching = False
            return loss

        def _prepare_inputs(self, *positional, **keywords):
            mode.watching = False
            inputs = super()._prepare_inputs(*positional, **keywords)
            mode.watching = True
            return inputs

    settings = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, **settings}
    train(Watched, model, folder, strategies=strategies, **settings)
    return mode.found


@pytest.mark.parametrize(
    ("strategies", "settings"),
    [
        ({}, {}),
        ({"microbatches": "planned"}, {"loss_type": "grpo"}),
        ({"update_schedule": "lopti"}, {"loss_type": "dapo", "beta": 0.04, "max_steps": 4}),
    ],
    ids=["default", "planned", "lopti"],
)
def test_no_micro_batch_waits(tiny_model, tmp_path: Path, strategies, settings):
    assert waits(tiny_model, tmp_path, strategies, **settings) == []


@pytest.mark.parametrize(
    "strategies",
    [
        {"token_weight": "clip_cov", "update_schedule": {"name": "lopti", "order": "random"}},
        {"token_weight": "stapo", "coefficient": "dfpo_orthogonal"},
    ],
    ids=lambda given: " ".join(given),
)
def test_weights_are_checked_once_an_optimizer_step(tiny_model, tmp_path: Path, strategies):
    found = waits(tiny_model, tmp_path, strategies, loss_type="cispo", epsilon_high=5.0)
    assert found == ["loss.py:raise_first"] * 3


def test_a_wait_is_seen(tiny_model, tmp_path: Path, monkeypatch):
    from evenkeel.trainer.algorithms import diagnostics

    def waiting(probs, mask):
        return torch.stack([probs[mask.bool()].sum(), mask.sum() * float(probs.sum() > 0)])

    monkeypatch.setattr("evenkeel.trainer.step.metrics.diagnostics.token_prob_counts", waiting)
    monkeypatch.setattr(sys.modules[__name__], "OURS", str(Path(__file__).parent))
    found = waits(tiny_model, tmp_path, {}, max_steps=1)
    assert found == ["test_device_waits.py:waiting"] * 4  # an index by a mask and a float, in two micro-batches
    assert diagnostics.token_prob_counts is waiting
