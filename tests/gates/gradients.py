"""Two exact claims about gradients, measured on real trainings through what every trainer shows: hooks and callbacks.

*Planned micro-batches*: their gradient is TRL's, from fewer tokens. The optimizer's learning rate is 0 and a callback
moves the weights after every step by the same seeded noise, so that both cuts see the same weights, rollouts and
importance ratios in every step.

*Whole groups*: a token that every response of a group has, with all that stands before it, gets weights dL/dlogπ that
add up to 0 within each optimizer step. They are read off the log-probabilities that the model returns.
"""

import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from torch import Tensor
from transformers import TrainerCallback

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Speed
from tests.paths import ROOT
from tests.tiny_model import save_tiny_model
from tests.trainer.training import by_tokens, digit_reward, train

TRL_CUT: dict[str, Any] = {"speed": Speed(microbatches="trl")}
PLANNED_CUT: dict[str, Any] = {"speed": Speed(microbatches="planned", verify_steps=0)}
"""Keywords of `RLVRTrainer`; without verification a wrong gradient is not replaced by TRL's."""

LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "vespo", "luspo")
_LOPTI = {"update_schedule": {"name": "lopti", "eta": 0.04}}
_WEIGHTED = {"token_weight": {"name": "adv_reweight", "alpha": 0.3}}
PLANNED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{name: ({"loss_type": name}, {}) for name in LOSSES},
    **{f"{name}, beta 0.04": ({"loss_type": name, "beta": 0.04}, {}) for name in LOSSES if name != "bnpo"},
    **{f"{name}, lopti": ({"loss_type": name}, _LOPTI) for name in ("grpo", "bnpo", "dapo", "vespo")},
    "dapo, lopti and weights": ({"loss_type": "dapo"}, {**_LOPTI, **_WEIGHTED}),
    "grpo, ratios of sequences": ({"loss_type": "grpo", "importance_sampling_level": "sequence"}, {}),
    "dr_grpo, off-policy mask": ({"loss_type": "dr_grpo", "off_policy_mask_threshold": 0.01}, {}),
    "bnpo, two-sided clip": ({"loss_type": "bnpo", "delta": 1.1}, {}),
    "grpo, truncated masked": ({"loss_type": "grpo", "mask_truncated_completions": True}, {}),
    "dapo, prefix tree": ({"loss_type": "dapo"}, {"advantage": "exchangeable_prefix_tree"}),
    "cispo, coefficient": ({"loss_type": "cispo"}, {"coefficient": "dfpo_min_replace"}),
    "grpo, adapter": ({"loss_type": "grpo"}, {"peft_config": "a small adapter"}),
}
"""Name → arguments of `GRPOConfig`, keywords of `RLVRTrainer`."""


class _Walking(TrainerCallback):
    """Notes the gradient of every step, then moves the weights by noise that is the same in every training."""

    def __init__(self) -> None:
        self.gradients: list[Tensor] = []
        self.tokens = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        def count(module: Any, positional: Any, keywords: Any) -> None:
            if torch.is_grad_enabled():
                self.tokens += keywords["input_ids"].numel()

        model.register_forward_pre_hook(count, with_kwargs=True)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        trained = [p for p in model.parameters() if p.requires_grad]
        zero = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        self.gradients.append(torch.cat([each.detach().double().flatten() for each in zero]))

    def on_step_end(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        generator = torch.Generator().manual_seed(100 + state.global_step)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))


def _half_dead(prompts: list[Any], completions: list[Any], **keywords: Any) -> list[float]:
    """Digits are right, where the prompt has more than one word; every other group is dead."""
    alive = [len(prompt[0]["content"].split()) > 1 for prompt in prompts]
    return [reward or 0.0 if live else 0.5 for live, reward in zip(alive, digit_reward(completions), strict=True)]


def walked(
    model: Path,
    folder: Path,
    settings: Mapping[str, Any],
    keywords: Mapping[str, Any],
    trainer: type[Any] = RLVRTrainer,
) -> tuple[list[Tensor], int]:
    """The gradient of each of four optimizer steps, two on each rollout batch, and the tokens computed for them."""
    walking = _Walking()
    keywords = dict(keywords)
    if keywords.get("peft_config"):
        adapter = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "init_lora_weights": "gaussian"}
        keywords["peft_config"] = LoraConfig(task_type="CAUSAL_LM", **adapter)
    passes = 2 if "update_schedule" in keywords else 1
    arguments: dict[str, Any] = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 4,
        "num_iterations": 2 // passes,
        "max_steps": 4,
        "max_completion_length": 24,
        "optim": "sgd",
        "learning_rate": 0.0,
        "max_grad_norm": 0.0,
        "epsilon_high": 5.0 if settings.get("loss_type") == "cispo" else None,
        **settings,
    }
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as: micro-batches stay as TRL cuts them
        warnings.filterwarnings("default", category=UserWarning, module="torch|peft|transformers|datasets")
        train(trainer, model, folder, reward=_half_dead, strategies=keywords, callbacks=[walking], **arguments)
    return walking.gradients, walking.tokens


def planned_beside_trl(
    cases: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = PLANNED,
    *,
    trainer: type[Any] = RLVRTrainer,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, tuple[float, float]]:
    """Name → the largest |planned − TRL's| / |TRL's| over the steps, and planned tokens / TRL's."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = save_tiny_model(folder / "model")
        for name, (settings, keywords) in cases.items():
            trls, trls_tokens = walked(model, folder / "trl", settings, {**keywords, **TRL_CUT}, trainer)
            mine, my_tokens = walked(model, folder / "planned", settings, {**keywords, **PLANNED_CUT}, trainer)
            sizes = [float(each.norm()) for each in trls]
            if len(mine) != len(trls) or min(sizes) == 0.0:
                raise ValueError(f"{name}: {len(mine)} steps, TRL {len(trls)}, gradients of sizes {sizes}")
            apart = [float((a - b).norm()) / size for a, b, size in zip(mine, trls, sizes, strict=True)]
            found[name] = max(apart), my_tokens / trls_tokens
            say(f"{name}: {found[name][0]:.1e} of its size, {found[name][1]:.0%} of the tokens")
    return found


class _Weighing(TrainerCallback):
    """dL/dlogπ of every token of every optimizer step, by the token and all that stands before it."""

    def __init__(self) -> None:
        self.steps: list[dict[tuple[int, ...], list[float]]] = [defaultdict(list)]

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        def watch(module: Any, positional: Any, keywords: Any, output: Any) -> None:
            if torch.is_grad_enabled() and output.log_probs.requires_grad:
                rows, labels = keywords["input_ids"], keywords["labels"]
                present = keywords["attention_mask"].bool()
                unscored = rows.shape[1] - output.log_probs.shape[1]  # the first token has nothing before it
                scored = labels[:, unscored:] != -100
                output.log_probs.register_hook(lambda gradient: self._note(rows, present, scored, gradient))

        model.register_forward_hook(watch, with_kwargs=True)

    def _note(self, rows: Tensor, present: Tensor, scored: Tensor, gradient: Tensor) -> None:
        unscored = rows.shape[1] - gradient.shape[1]
        for ids, here, labelled, weights in zip(rows, present, scored, gradient, strict=True):
            for position in labelled.nonzero().flatten().tolist():
                end = unscored + position + 1
                self.steps[-1][tuple(ids[:end][here[:end]].tolist())].append(float(weights[position]))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.steps.append(defaultdict(list))

    def residuals(self, rows: int) -> list[float]:
        """Of every step: |Σ weights| / Σ |weights| over the tokens that ``rows`` rows have: those of a whole group."""
        seen: dict[tuple[int, ...], int] = defaultdict(int)
        for step in self.steps:
            for key, weights in step.items():
                seen[key] += len(weights)
        found = []
        for step in self.steps:
            shared = [torch.tensor(weights).double() for key, weights in step.items() if seen[key] == rows]
            whole = sum(float(weights.abs().sum()) for weights in shared)
            if whole > 0:
                found.append(sum(abs(float(weights.sum())) for weights in shared) / whole)
        return found


GROUP_SIZE = 4
CLAIMS = {"exchangeable": "grpo", "exchangeable_prefix_tree": "dapo", "exchangeable_token_class": "grpo"}
"""Advantage estimators under which shared tokens cancel → a loss that divides by what keeps it so."""
METRIC = "cancellation/shared_prefix"
_TASKS = ("27 from the numbers 3, 3, 3", "3 from the numbers 1, 7, 2", "11 from the numbers 2, 4, 5")
_TASKS += ("8 from the numbers 9, 6, 5", "14 from the numbers 7, 2, 9", "20 from the numbers 12, 6, 2")
_TASKS += ("5 from the numbers 1, 8, 4", "33 from the numbers 11, 3, 2")
COUNTDOWN = [{"prompt": f"Make {task} with +, -, * and /. Use each number at most once."} for task in _TASKS]
"""Eight different prompts, as the policy that ships knows them."""


def cancelled(
    advantage: str, steps: int, schedule: Any, keep_groups: str | None, trainer: type[Any] = RLVRTrainer
) -> tuple[list[float], list[float]]:
    """Residuals of the optimizer steps of one rollout batch of the countdown policy: measured here, and as logged."""
    weighing, passes = _Weighing(), 1 if schedule == "single_pass" else 2
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        trained = train(
            trainer,
            ROOT / "configs" / "tiny_policy" / "countdown",
            Path(folder),
            reward=by_tokens,
            rows=COUNTDOWN,
            strategies={"advantage": advantage, "update_schedule": schedule, "keep_groups": keep_groups},
            callbacks=[weighing],
            loss_type=CLAIMS[advantage],
            num_generations=GROUP_SIZE,
            per_device_train_batch_size=4,
            steps_per_generation=8,
            gradient_accumulation_steps=8 // steps,
            max_steps=steps * passes,
            max_completion_length=64,
            learning_rate=1e-7,
        )
    return weighing.residuals(GROUP_SIZE * passes), [log[METRIC] for log in trained.state.log_history if METRIC in log]


def all_cancelled(
    *, trainer: type[Any] = RLVRTrainer, say: Callable[[str], None] = lambda _: None
) -> dict[str, tuple[float, float]]:
    """Name → the largest residual over the steps, measured here and as logged; of ``scattered …`` groups the mean."""
    found = {}
    for advantage in CLAIMS:
        for steps, schedule in ((1, "single_pass"), (2, "single_pass"), (4, {"name": "lopti", "eta": 0.5})):
            name = f"{advantage}, {steps} steps, {'lopti' if isinstance(schedule, dict) else schedule}"
            own, logged = cancelled(advantage, steps, schedule, None, trainer)
            if not own or not logged:
                raise ValueError(f"{name}: no token is shared by a group, so nothing has to cancel")
            found[name] = max(own), max(logged)
            say(f"{name}: {found[name][0]:.1e}, logged {found[name][1]:.1e}")
    for advantage in CLAIMS:
        name = f"scattered {advantage}, 4 steps"
        own, logged = cancelled(advantage, 4, "single_pass", "off", trainer)
        found[name] = sum(own) / len(own), sum(logged) / len(logged)
        say(f"{name}: {found[name][0]:.2f}, logged {found[name][1]:.2f}")
    return found
