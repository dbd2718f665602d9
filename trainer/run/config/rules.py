"""Settings of a run file that contradict each other, or have no effect.

Only what a rehearsal does not find has a rule: the run would silently differ from its file. Settings are dotted paths;
arguments of TRL that the file lacks have TRL's default.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from pydantic_core import InitErrorDetails

from evenkeel.errors import Problem, Rule, Said, rule
from evenkeel.trainer.run.config.problems import problem
from evenkeel.trainer.run.config.trl_arguments import grpo_default
from evenkeel.trainer.step.options import NOTABLE_CHANGE

RULES: list[Rule] = []
"""Errors are looked for when a file for training is read, warnings once all parts of the run are built."""


@dataclass(frozen=True)
class Given:
    """Input of a rule: a valid ``run`` as plain data. For what a file leaves out only TRL's defaults are known."""

    run: Mapping[str, Any]

    def __getitem__(self, path: str) -> Any:
        """The setting, or TRL's default; ``None`` where there is neither."""
        section, _, key = path.rpartition(".")
        is_default = section == "trl" and key not in self.run.get(section, {})
        return grpo_default(key) if is_default else self.written(path)

    def written(self, path: str) -> Any:
        """The setting as it is written, or ``None``."""
        value: Any = self.run
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def number(self, path: str) -> float:
        """The setting, or NaN, with which every comparison is false."""
        value = self[path]
        return math.nan if value is None else float(value)


def conflicts(run: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Problems of a training run's plain data by the rules with severity ``error``."""
    for each in RULES:
        if each.severity == "error":
            for found in each.problems(Given(run)):
                yield problem(found.code, found.what, "", found.path)


def warnings_of(given: Given) -> Iterator[Problem]:
    """Problems by the rules with severity ``warning``."""
    return (found for each in RULES if each.severity == "warning" for found in each.problems(given))


_GREEDY: dict[str, tuple[Callable[[float], bool], str]] = {
    "top_k": (lambda k: k == 1, "0 for all tokens"),
    "temperature": (lambda t: 0 < t < 0.01, "0.01 at least"),
    "top_p": (lambda p: 0 < p < 0.05, "0.05 at least"),
    "min_p": (lambda p: p > 0.99, "0.05"),
}


@rule(RULES, "trl.top_k trl.temperature trl.top_p trl.min_p", "training")
def one_token(given: Given) -> Said:
    """Sampling under which all completions of a group are the same."""
    for name, (is_greedy, instead) in _GREEDY.items():
        if is_greedy(value := given.number(f"trl.{name}")):
            yield f"trl.{name}", f"is {value:g}: all completions of a group would be the same. Write {instead}."


_OVERRULED = ("max_new_tokens", "max_tokens", "max_length", "temperature", "top_p", "top_k", "min_p")
_ONE = ("num_beams", "num_return_sequences", "n", "best_of")


@rule(RULES, "trl.generation_kwargs", "training")
def generation_kwargs(given: Given) -> Said:
    """Generation options that are greedy, give several completions, or differ from those that TRL scores with."""
    kwargs = given.written("trl.generation_kwargs") or {}
    keys = [key for key in (*_OVERRULED, "repetition_penalty") if key in kwargs]
    keys += ["do_sample"] if kwargs.get("do_sample") is False else []
    if keys := [*keys, *(key for key in _ONE if kwargs.get(key, 1) not in (1, None))]:
        yield f"holds {', '.join(keys)}, which TRL would not know as it scores. Write it under `trl:`, or leave it out."


_READ_WITH: tuple[tuple[str, str, str], ...] = (
    ("vllm_", "use_vllm", "true"),
    ("vllm_server_ vllm_group_port", "vllm_mode", "server"),
    (
        "vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size vllm_enable_sleep_mode",
        "vllm_mode",
        "colocate",
    ),
    ("num_train_epochs", "max_steps", "-1"),
    ("entropy_target entropy_coef_", "use_adaptive_entropy", "true"),
    ("ref_model_", "sync_ref_model", "true"),
    ("save_steps", "save_strategy", "steps"),
    ("sapo_", "loss_type", "sapo"),
    ("vespo_", "loss_type", "vespo"),
    ("delta", "loss_type", "grpo bnpo dr_grpo dapo luspo"),
)
"""Beginnings of keys of ``trl:``, the argument under which TRL reads them, and its values."""


@rule(RULES, "trl vllm model.revision", severity="warning")
def no_effect(given: Given) -> Said:
    """A setting that has no effect under the others."""
    names = [name for name, value in (given.written("trl") or {}).items() if value not in (None, [])]
    for beginnings, argument, values in _READ_WITH:
        if str(given[f"trl.{argument}"]).rpartition(".")[2].lower() not in values.split():
            for name in names:
                if name.startswith(tuple(beginnings.split())):
                    yield f"trl.{name}", f"has no effect without trl.{argument}: {values.replace(' ', ', ')}."
    if "max_tool_calling_iterations" in names and not (given.written("tools") or given.written("environment")):
        yield "trl.max_tool_calling_iterations", "has no effect without tools or an environment."
    if given.number("evaluation.temperature") > 0 and given["evaluation.greedy"] and not given["evaluation.samples"]:
        yield "evaluation.temperature", "has no effect without evaluation.samples."
    if given.written("trl.fsdp_config") and not given["trl.fsdp"]:
        yield "trl.fsdp_config", "has no effect without trl.fsdp: true."
    if given.written("vllm") is not None and not given["trl.use_vllm"]:
        yield "vllm", "has no effect without trl.use_vllm: true."
    if given.written("model.revision") and Path(str(given.written("model.name_or_path"))).is_dir():
        yield "model.revision", "has no effect: a folder has no revisions."


_ENGINE_DIFFERENCE = 0.03
"""Standard deviation of a token's log-probability between vLLM and the trainer under bfloat16; assumed."""


@rule(RULES, "trl.vllm_importance_sampling_mode", severity="warning")
def correction_of_long_responses(given: Given) -> Said:
    """A correction of vLLM by whole responses whose bound removes over 5 % of the gradient of long ones."""
    mode, length = str(given["trl.vllm_importance_sampling_mode"]), given.number("trl.max_completion_length")
    lower, upper = (given.number(f"trl.vllm_importance_sampling_clip_{end}") for end in ("min", "max"))
    is_on = given["trl.use_vllm"] and given["trl.vllm_importance_sampling_correction"] is True
    if not (is_on and mode.startswith("sequence") and upper > 0) or given["trl.bf16"] is False or lower > 0:
        return
    # log ρ is normal with mean −σ²/2, as the engine samples: E ρ = 1, of which the bound cuts off the upper tail
    deviation = _ENGINE_DIFFERENCE * math.sqrt(max(length, 1))
    beyond = math.log(upper) / deviation
    left = NormalDist().cdf(beyond - deviation / 2)
    if mode.endswith("truncate"):
        left += upper * NormalDist().cdf(-beyond - deviation / 2)
    if left < 1 - NOTABLE_CHANGE:
        better = mode.replace("sequence", "token")
        yield f"is {mode}: of responses of {length:,.0f} tokens {left:.0%} of the gradient is left. Write {better}."
