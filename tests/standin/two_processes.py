"""Cases and planted errors on two ranks of the stand-in device, whose collectives are as NCCL's.

    torchrun --standalone --nproc_per_node 2 -m tests.standin.two_processes FOLDER

writes ``rank-0.json`` and ``rank-1.json`` into FOLDER: name of a case or error → what that rank raised, or null.
"""

import json
import os
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="disabled", TRANSFORMERS_VERBOSITY="error")

from tests.standin import collectives, plugin  # noqa: F401  # before accelerate is imported

collectives.install()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from tests.standin.cases import CASES  # noqa: E402
from tests.standin.mutants import MUTANTS_OF_TWO  # noqa: E402
from tests.trainer.training import max_difference  # noqa: E402

NAMES = (
    "stock",
    "default",
    "exchangeable, reweighted",
    "lopti, KL",
    "dfpo_min_replace",
    "ibpo",
    "planned",
    "common random numbers",
    "dynamic",
    "difficulty",
)


def trained(name: str, folder: Path) -> str | None:
    """What the case raises; it has to run on both ranks of the device, and to leave them the same weights."""
    try:
        trainer = CASES[name].run(folder)
    except RuntimeError as error:
        return str(error)
    if trainer.accelerator.num_processes != 2 or trainer.accelerator.device.type != "standin":
        return f"{trainer.accelerator.num_processes} process(es) on {trainer.accelerator.device}"
    total = torch.stack([value.double().sum() for value in trainer.model.state_dict().values()]).sum()
    if trainer.accelerator.gather(total[None]).unique().numel() != 1:
        return "the ranks end with different weights"
    return None


def resumed(folder: Path) -> str | None:
    settings = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    whole = CASES["default"].run(folder, **settings)
    again = CASES["default"].run(folder, **settings, resume_from_checkpoint=str(folder / "checkpoint-2"))
    difference = max_difference(whole, again)
    return f"a resumed run differs by {difference}" if difference else None


def main(folder: Path) -> None:
    found = {name: trained(name, folder / name) for name in NAMES}
    found["resumed"] = resumed(folder / "resumed")
    found |= {name: mutant.error(folder / name) for name, mutant in MUTANTS_OF_TWO.items()}
    (folder / f"rank-{dist.get_rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
