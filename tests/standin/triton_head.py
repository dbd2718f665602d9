"""TRL's way to log-probabilities on CUDA, compact positions and Triton kernels, beside its way without Triton.

    TRITON_INTERPRET=1 PYTHONPATH=FOLDER python -m tests.standin.triton_head [--cpu]

FOLDER is that of scripts/triton_environment.sh. Prints JSON: name of a cut → largest difference of the final weights of
two trainings, one with each way, and the largest change of a weight by training.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="disabled", TRANSFORMERS_VERBOSITY="error")
if "--cpu" not in sys.argv:
    from tests.standin import plugin  # noqa: F401

import trl.kernels.chunked_logprob as kernels
import trl.trainer.utils as head
from transformers import AutoModelForCausalLM

from tests.standin.cases import POLICY, Case
from tests.trainer.training import max_difference

CASE = Case(
    {"advantage": "exchangeable", "token_weight": {"name": "adv_reweight", "alpha": 0.3}},
    {
        "loss_type": "dapo",
        "beta": 0.04,
        "optim": "sgd",
        "learning_rate": 1.0,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
    },
)


def trained(strategies: dict[str, object], *, with_triton: bool):
    kernels._use_triton = head._use_triton = lambda _: with_triton
    with tempfile.TemporaryDirectory() as folder:
        return Case({**CASE.strategies, **strategies}, CASE.settings).run(Path(folder))


def main() -> None:
    assert kernels._TRITON_AVAILABLE, "no triton: bash scripts/triton_environment.sh"
    start = AutoModelForCausalLM.from_pretrained(POLICY).state_dict()
    found = {}
    for name, strategies in {"trl": {}, "planned": {"microbatches": "planned"}}.items():
        plain, triton = (trained(strategies, with_triton=each) for each in (False, True))
        weights = triton.model.state_dict().items()
        moved = max((value.cpu().float() - start[key].float()).abs().max().item() for key, value in weights)
        found[name] = {"difference": max_difference(plain, triton), "moved": moved}
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
