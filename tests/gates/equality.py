"""A drop-in beside stock `GRPOTrainer`, optimizer step by optimizer step, under 72 settings.

Both train the same tiny model from the same weights, rows and seed. Compared are the gradient and the weights of every
step, every logged number, and where torch's generator ends. A drop-in differs by exactly 0 everywhere; it may log
numbers of its own. Everything is read by a callback, so that nothing here depends on how a trainer is written.
"""

import io
import itertools
import math
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from torch import Tensor
from transformers import TrainerCallback
from trl import GRPOTrainer

from tests.tiny_model import save_tiny_model
from tests.trainer.training import made

STEPS = 6
LEAST_MOVED = 1e-3
"""A training that moves no weight further than this would compare nothing."""
_CLOCK = ("_time", "_runtime", "_per_second")
_TEXTS = ("a b", "c d e", "f", "g h a", "b b", "i", "c", "d e", "a", "h h", "e f g h", "b i")


def share_of_digits(completions: list[Any], **_: Any) -> list[float | None]:
    """In eighths: sums of them are exact in float32, so that equal rewards have exactly no spread."""
    return [round(8 * sum(word.isdigit() for word in words) / max(len(words), 1)) / 8 for words in _words(completions)]


def brevity(completions: list[Any], **_: Any) -> list[float | None]:
    """In eighths as well; a completion that begins with a letter cannot be scored."""
    return [None if words[:1] and words[0].isalpha() else max(0, 8 - len(words)) / 8 for words in _words(completions)]


def _words(completions: list[Any]) -> list[list[str]]:
    return [(each if isinstance(each, str) else each[-1]["content"]).split() for each in completions]


@dataclass(frozen=True)
class Setting:
    """One training; ``arguments`` go to `GRPOConfig`."""

    name: str
    arguments: dict[str, Any]
    rewards: tuple[Callable[..., Any], ...] = (share_of_digits,)
    chat: bool = False
    streamed: bool = False
    evaluated: bool = False
    lora: bool = False
    resumed: bool = False
    """Stopped after half of the steps, and taken up from the checkpoint by a new trainer."""


LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")
GRID = [
    Setting(
        f"{loss}, {iterations} iterations, {accumulation} micro-batches, beta {beta}",
        {
            "loss_type": loss,
            "num_iterations": iterations,
            "gradient_accumulation_steps": accumulation,
            "beta": beta,
            **({"epsilon_high": 5.0} if loss == "cispo" else {}),
        },
    )
    for loss, iterations, accumulation, beta in itertools.product(LOSSES, (1, 2), (1, 2), (0.0, 0.04))
]
_TWICE = {"num_iterations": 2}
ONE_OFFS = [
    Setting("vespo", {"loss_type": "vespo", **_TWICE}),
    Setting("luspo of sequences", {"loss_type": "luspo", "importance_sampling_level": "sequence", **_TWICE}),
    Setting(
        "ratios of sequences", {"loss_type": "grpo", "importance_sampling_level": "sequence", "beta": 0.04, **_TWICE}
    ),
    Setting("rewards not scaled", {"scale_rewards": "none"}),
    Setting("rewards scaled by the batch", {"scale_rewards": "batch", "beta": 0.04}),
    Setting("two rewards, one sometimes unscored", {}, rewards=(share_of_digits, brevity)),
    Setting(
        "two rewards, each normalised",
        {"multi_objective_aggregation": "normalize_then_sum", "reward_weights": [0.75, 0.25]},
        rewards=(share_of_digits, brevity),
    ),
    Setting("truncated completions masked", {"mask_truncated_completions": True, "gradient_accumulation_steps": 2}),
    Setting("entropy quantile", {"top_entropy_quantile": 0.25, **_TWICE}),
    Setting("entropy bonus", {"entropy_coef": 0.05, "gradient_accumulation_steps": 2}),
    Setting("two-sided clip", {"delta": 1.2, "epsilon": 0.1, "epsilon_high": 0.3, "num_iterations": 3}),
    Setting("off-policy mask", {"off_policy_mask_threshold": 0.01, **_TWICE}),
    Setting("bias-corrected KL", {"beta": 0.1, "use_bias_correction_kl": True, **_TWICE}),
    Setting(
        "reference that follows",
        {"beta": 0.1, "sync_ref_model": True, "ref_model_sync_steps": 2, "ref_model_mixup_alpha": 0.5},
    ),
    Setting("several steps a rollout batch", {"steps_per_generation": 4, "gradient_accumulation_steps": 2}),
    Setting("larger rollout batch", {"generation_batch_size": 16, "per_device_train_batch_size": 4}),
    Setting(
        "options of sampling", {"temperature": 0.7, "top_k": 12, "top_p": 0.9, "repetition_penalty": 1.1, **_TWICE}
    ),
    Setting("evaluation between steps", {"eval_strategy": "steps", "eval_steps": 2}, evaluated=True),
    Setting("gradient checkpointing", {"gradient_checkpointing": True, **_TWICE}),
    Setting("bfloat16", {"bf16": True, **_TWICE}),
    Setting("adapter", {"beta": 0.04}, lora=True),
    Setting("chat", _TWICE, chat=True),
    Setting("streamed rows", {}, streamed=True),
    Setting("stopped and resumed", {"gradient_accumulation_steps": 2, **_TWICE}, resumed=True),
]
SETTINGS = [*GRID, *ONE_OFFS]
QUICK = [
    *[one for one in GRID if one.name.endswith(", 1 iterations, 1 micro-batches, beta 0.0")][::2],
    *[one for one in GRID if one.name.endswith(", 2 iterations, 2 micro-batches, beta 0.04")],
    *[one for one in ONE_OFFS if one.name in ("two rewards, each normalised", "evaluation between steps", "adapter")],
    *[one for one in ONE_OFFS if one.name in ("several steps a rollout batch", "stopped and resumed")],
]
"""A setting of each kind."""


@dataclass
class Trace:
    """What one training did."""

    gradients: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    """Before the first step, and after each."""
    logs: list[dict[str, Any]] = field(default_factory=list)
    generator: Tensor | None = None


class _Tracing(TrainerCallback):
    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        if state.global_step == 0:
            self.trace.weights.append(_flat(model.state_dict().values()))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        self.trace.gradients.append(_flat(p.grad for p in model.parameters() if p.grad is not None))

    def on_step_end(self, args: Any, state: Any, control: Any, *, model: Any, **_: Any) -> None:
        self.trace.weights.append(_flat(model.state_dict().values()))


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    parts = [tensor.detach().double().flatten() for tensor in tensors]
    return torch.cat(parts) if parts else torch.zeros(0).double()


def class_of(name: str) -> type[GRPOTrainer]:
    """``module:Class``, imported."""
    module, _, attribute = name.partition(":")
    found: type[GRPOTrainer] = getattr(import_module(module), attribute)
    return found


def traced(trainer_class: type[GRPOTrainer], setting: Setting, folder: Path) -> Trace:
    """Train under ``setting`` in ``folder``, from scratch."""
    trace = Trace()
    model = save_tiny_model(folder / "model")  # by path: where beta > 0 TRL loads the reference from it
    prompts = [[{"role": "user", "content": text}] if setting.chat else text for text in _TEXTS]
    rows = Dataset.from_dict({"prompt": prompts, "unused": [*range(len(prompts))]})
    arguments: dict[str, Any] = {
        "per_device_eval_batch_size": 8,
        "max_completion_length": 10,
        "lr_scheduler_type": "constant",
        "save_strategy": "steps" if setting.resumed else "no",
        "save_steps": STEPS // 2,
        "seed": 3,
        "reward": list(setting.rewards),
        "rows": rows.to_iterable_dataset() if setting.streamed else rows,
        **setting.arguments,
    }

    def trainer(max_steps: int) -> GRPOTrainer:
        adapter = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights="gaussian")
        keywords = {
            "eval_dataset": rows.select(range(4)) if setting.evaluated else None,
            "peft_config": adapter if setting.lora else None,
            "callbacks": [_Tracing(trace)],
        }
        return made(trainer_class, model, folder / "run", strategies=keywords, max_steps=max_steps, **arguments)

    if setting.resumed:
        trainer(STEPS // 2).train()
    last = trainer(STEPS)
    last.train(resume_from_checkpoint=str(folder / "run" / f"checkpoint-{STEPS // 2}") if setting.resumed else None)
    trace.logs = [{k: v for k, v in each.items() if not k.endswith(_CLOCK)} for each in last.state.log_history]
    trace.generator = torch.get_rng_state()
    return trace


@dataclass
class Comparison:
    """How far two trainings were apart; ``wrong`` says where first, and is empty where they are equal."""

    name: str
    wrong: list[str]
    gradients: float = 0.0
    weights: float = 0.0
    logs: float = 0.0
    moved: float = 0.0
    sound: bool | None = None
    """Stock equals itself under this setting; ``None`` = not tried."""

    @property
    def equal(self) -> bool:
        return not self.wrong


def compared(name: str, stock: Trace, other: Trace) -> Comparison:
    """Of the settings called ``name``."""
    found = Comparison(name, [])
    for kind in ("gradients", "weights"):
        theirs, ours = getattr(stock, kind), getattr(other, kind)
        if [one.shape for one in theirs] != [one.shape for one in ours]:
            found.wrong.append(f"{len(ours)} {kind} of other shapes than stock's {len(theirs)}")
            continue
        apart = [_difference(one, two) for one, two in zip(theirs, ours, strict=True)]
        setattr(found, kind, max(apart, default=0.0))
        if any(apart):
            step = next(step for step, value in enumerate(apart) if value)
            found.wrong.append(f"{kind} by {max(apart):.2g}, first those with number {step}")
    if len(stock.logs) != len(other.logs):
        found.wrong.append(f"{len(other.logs)} log entries, stock {len(stock.logs)}")
    else:
        _compare_logs(found, stock.logs, other.logs)
    if stock.generator is None or other.generator is None or not torch.equal(stock.generator, other.generator):
        found.wrong.append("torch's generator ends elsewhere")
    found.moved = _difference(stock.weights[0], stock.weights[-1])
    if len(stock.gradients) != STEPS or found.moved < LEAST_MOVED:
        found.wrong.append(f"stock made {len(stock.gradients)} steps and moved by {found.moved:.2g} only")
    return found


def _compare_logs(found: Comparison, stock: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    for theirs, ours in zip(stock, other, strict=True):
        for key, value in theirs.items():
            apart = _apart(value, ours[key]) if key in ours else math.inf
            if apart and not found.logs:
                found.wrong.append(f"{key} at step {theirs.get('step')}: {ours.get(key)}, stock {value}")
            found.logs = max(found.logs, apart)


def _apart(one: Any, two: Any) -> float:
    """Of two logged values: 0 where they are equal, NaN and None included; infinite where one of them is no number."""
    if one == two or (one != one and two != two):
        return 0.0
    numbers = isinstance(one, int | float) and isinstance(two, int | float)
    return math.inf if not numbers or math.isnan(one - two) else abs(one - two)


def _difference(one: Tensor, two: Tensor) -> float:
    """The largest; NaN equals NaN."""
    apart = (one.double() - two.double()).abs().masked_fill(one.isnan() & two.isnan(), 0)
    return float(apart.nan_to_num(nan=math.inf).max()) if apart.numel() else 0.0


def tried(name: str, trainer: str, *, with_control: bool) -> Comparison:
    """The setting called ``name``; ``with_control``: stock against itself as well."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    setting = next(each for each in SETTINGS if each.name == name)
    # the trainers print every log entry; it is compared instead
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        stock = traced(GRPOTrainer, setting, Path(folder) / "stock")
        try:
            result = compared(name, stock, traced(class_of(trainer), setting, Path(folder) / "other"))
        except Exception as failure:  # noqa: BLE001  whatever a trainer under test raises is a difference
            result = Comparison(name, [f"{type(failure).__name__}: {failure}"])
        if with_control:
            result.sound = compared(name, stock, traced(GRPOTrainer, setting, Path(folder) / "again")).equal
    return result


def all_compared(
    pairs: Iterable[tuple[Setting, str]], *, jobs: int, say: Callable[[str], None] = lambda _: None
) -> list[Comparison]:
    """Every setting with the class that it is given; stock is compared with itself under every eighth."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        started = [
            pool.submit(tried, setting.name, trainer, with_control=number % 8 == 0)
            for number, (setting, trainer) in enumerate(pairs)
        ]
        results = []
        for future in started:
            results.append(future.result())
            last = results[-1]
            say(f"{last.name}: {'equal' if last.equal else '; '.join(last.wrong)}")
        return results
