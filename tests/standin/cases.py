"""The trainings of the tier: stock TRL, and ours in each way that puts other tensors on the device.

All train the countdown policy: it answers alike, so the responses of a group share prefixes, and the code that handles
those runs too. The random model of the other tests shares none.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Guards
from tests.paths import ROOT
from tests.trainer.training import digit_reward, train

POLICY = ROOT / "configs/tiny_policy/countdown"


def half_right(completions: list[Any], log_extra: Callable[..., None], **_: Any) -> list[float]:
    """About every second answer is right, by its text: revisions and difficulty have something to do."""
    right = [zlib.crc32(completion[0]["content"].encode()) % 2 == 0 for completion in completions]
    log_extra("correct", right)
    return [float(each) for each in right]


def half_dead(completions: list[Any], **_: Any) -> list[float]:
    """In every second group all rewards are equal, so that no row of it has a gradient."""
    return [float(index % 8 == 0) for index in range(len(completions))]


@dataclass(frozen=True)
class Case:
    strategies: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    reward: Callable[..., Any] = digit_reward
    trainer: type[GRPOTrainer] = RLVRTrainer

    def run(self, folder: Path, trainer: type[GRPOTrainer] | None = None, **settings: Any) -> GRPOTrainer:
        """Two optimizer steps of it, unless ``settings`` say otherwise."""
        return train(
            trainer or self.trainer,
            POLICY,
            folder,
            reward=self.reward,
            strategies=self.strategies,
            **{"max_steps": 2, "learning_rate": 1e-3, **self.settings, **settings},
        )


class Resumed(Case):
    """Trained from a checkpoint that lies between two log lines, with what was measured before it."""

    def run(self, folder: Path, trainer: type[GRPOTrainer] | None = None, **settings: Any) -> GRPOTrainer:
        watched = replace(self, strategies={**self.strategies, "guards": Guards(folder)})
        each = {"logging_steps": 2, "save_strategy": "steps", "save_steps": 1, **settings, "max_steps": 2}
        Case.run(watched, folder, trainer, **each)
        return Case.run(watched, folder, trainer, **each, resume_from_checkpoint=str(folder / "checkpoint-1"))


_FOUR_BY_FOUR = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4}
_TWO_STEPS_A_BATCH = {"loss_type": "cispo", "epsilon_high": 5.0, "num_iterations": 2}
_REWEIGHTED = {"advantage": "exchangeable", "token_weight": {"name": "adv_reweight", "alpha": 0.3}}
_PRODUCT = {"name": "dfpo_min_replace", "weight": "product"}

CASES: dict[str, Case] = {
    "stock": Case(trainer=GRPOTrainer),
    "default": Case(),
    "exchangeable, reweighted": Case(_REWEIGHTED, {"loss_type": "dapo"}),
    "tokens by class": Case({"advantage": "exchangeable_token_class"}, {"loss_type": "grpo"}),
    "prefix tree": Case({"advantage": "exchangeable_prefix_tree"}, {"loss_type": "dapo"}),
    "entropies": Case({"advantage": "gtpo", "token_weight": "top_entropy"}, {"loss_type": "grpo"}),
    "clip_cov": Case({"token_weight": "clip_cov"}),
    "stapo": Case({"token_weight": "stapo"}),
    "lopti": Case({"update_schedule": "lopti"}, {"loss_type": "dapo", "max_steps": 4}),
    "lopti, random": Case(
        {"update_schedule": {"name": "lopti", "order": "random"}}, {"loss_type": "dapo", "max_steps": 4}
    ),
    "lopti, KL": Case({"update_schedule": "lopti"}, {"loss_type": "dapo", "max_steps": 4, "beta": 0.04}),
    "dfpo_min_replace": Case({"advantage": "dr_grpo", "coefficient": _PRODUCT}, _TWO_STEPS_A_BATCH),
    "dfpo_orthogonal": Case({"advantage": "dr_grpo", "coefficient": "dfpo_orthogonal"}, _TWO_STEPS_A_BATCH),
    "ibpo": Case({"advantage": "ibpo", "revision": {"references": 2, "template": "{prompt}"}}, reward=half_right),
    "planned": Case({"microbatches": "planned"}, _FOUR_BY_FOUR),
    "planned, dead groups": Case({"microbatches": "planned"}, _FOUR_BY_FOUR, half_dead),
    "planned, lopti": Case(
        {"microbatches": "planned", "update_schedule": "lopti"}, {**_FOUR_BY_FOUR, "max_steps": 4, "loss_type": "dapo"}
    ),
    "shared prompts": Case({"microbatches": "planned", "shared_prompts": True}, _FOUR_BY_FOUR),
    "compact generation": Case({"generation": "compact"}),
    "common random numbers": Case({"generation": "compact", "common_random_numbers": True}),
    "dynamic": Case({"prompt_sampler": {"name": "dynamic", "max_rounds": 3}}),
    "difficulty": Case({"prompt_sampler": "difficulty"}, reward=half_right),
    "reference, iterations": Case(settings={"beta": 0.04, "num_iterations": 2, "loss_type": "grpo"}),
    "groups in a step": Case({"keep_groups": "step"}),
    "groups in a forward": Case({"keep_groups": "forward"}),
    "bf16": Case(settings={"bf16": True}),
    "bf16, dfpo": Case({"advantage": "dr_grpo", "coefficient": _PRODUCT}, {**_TWO_STEPS_A_BATCH, "bf16": True}),
    "bf16, planned": Case({"microbatches": "planned"}, {**_FOUR_BY_FOUR, "bf16": True}),
}
RESUMED = {"resumed between log lines": Resumed()}
"""Not among the others: what a checkpoint and a resume wait for is not in the table of waits."""
