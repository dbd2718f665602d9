"""Numbers of short trainings on this machine's device, as JSON on the last line.

python -m tests.gpu.measures parity
python -m tests.gpu.measures planned
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.gradient_check import GradientComparison
from tests.standin.cases import POLICY
from tests.trainer.training import max_difference, train


def trained(trainer_class: type[GRPOTrainer], folder: Path, **keywords: Any) -> GRPOTrainer:
    """Three optimizer steps in bfloat16 where there is a GPU, in float32 on a CPU."""
    on_gpu = torch.cuda.is_available()
    settings = {"use_cpu": not on_gpu, "bf16": on_gpu, "learning_rate": 1e-4, **keywords}
    return train(trainer_class, POLICY, folder, **settings)


def parity(folder: Path) -> dict[str, Any]:
    """The largest difference of a final weight: of our defaults to stock TRL, and of stock TRL to itself."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    stock, again = (trained(GRPOTrainer, folder) for _ in range(2))
    ours = trained(RLVRTrainer, folder)
    return {"ours to TRL": max_difference(stock, ours), "TRL to itself": max_difference(stock, again)}


def planned(folder: Path) -> dict[str, Any]:
    """The largest difference of planned micro-batches' gradient to that of TRL's, as a share of its size."""
    found: list[float] = []

    class Noting(RLVRTrainer):
        def _compared(self, *cuts: Any) -> GradientComparison | str:
            comparison = super()._compared(*cuts)
            assert not isinstance(comparison, str), comparison
            found.append(comparison.difference)
            return comparison

    batch = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "max_completion_length": 24}
    trained(Noting, folder, strategies={"microbatches": "planned", "verify_steps": 3}, **batch)
    return {"compared": len(found), "largest difference": max(found)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        result = {"parity": parity, "planned": planned}[sys.argv[1]](Path(directory))
    sys.stdout.write(f"\n{json.dumps(result)}\n")
