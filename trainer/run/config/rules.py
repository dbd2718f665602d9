"""Settings of a run file that contradict each other, or have no effect.

A rule stands here where a rehearsal passes and the run would silently be another than the file says. A setting is named
by its dotted path; of TRL's arguments the default counts where the file gives none.
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
"""Asked of a ``file``, of one that is for ``training``, and with a warning where all parts of the run are there."""


@dataclass(frozen=True)
class Given:
    """What a rule may ask.

    Attributes:
        run: the run as plain data: of what a file leaves out only the defaults of TRL are known.
        coefficient_under_rounding: its mean as a multiple of what it is without (`trial.coefficient_under_noise`); 1
            where it is not known, and where a run has no rounding or no ratio.
    """

    run: Mapping[str, Any]
    coefficient_under_rounding: float = 1.0

    def __getitem__(self, path: str) -> Any:
        """The setting, or TRL's default; ``None`` where there is neither."""
        found, name = self.written(path), path.removeprefix("trl.")
        return grpo_default(name) if found is None and path != name and not self.wrote(path) else found

    def wrote(self, path: str) -> bool:
        """Whether the run's settings name it."""
        section, _, key = path.rpartition(".")
        inside = self.written(section) if section else self.run
        return isinstance(inside, Mapping) and key in inside

    def written(self, path: str) -> Any:
        """The setting as it is written, or ``None``."""
        value: Any = self.run
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def number(self, path: str) -> float:
        """The setting where it is a number, else NaN, with which every comparison is false."""
        value = self[path]
        return math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def conflicts(run: Mapping[str, Any], *, trains: bool = True) -> Iterator[InitErrorDetails]:
    """The problems of a run's plain data by the rules that refuse a file; values of a wrong type break no rule.

    Args:
        trains: the run is not only evaluated.
    """
    for each in RULES:
        if each.severity == "error" and (trains or each.moment != "training"):
            for found in each.problems(Given(run)):
                yield problem(found.code, found.what, "", found.path)


def warnings_of(given: Given) -> Iterator[Problem]:
    """What a run's settings say that is probably not intended."""
    return (found for each in RULES if each.severity == "warning" for found in each.problems(given))


_SAME = "all completions of a group would be the same, and every advantage 0"
_GREEDY: dict[str, tuple[Callable[[float], bool], str]] = {
    "top_k": (lambda k: k == 1, "top_k: 0, which draws from all tokens"),
    "temperature": (lambda t: 0 < t < 0.01, "0.01 at least; greedy answers are for `evaluation: {greedy: true}`"),
    "top_p": (lambda p: 0 < p < 0.05, "0.05 at least"),
    "min_p": (lambda p: p > 0.99, "a small share such as 0.05"),
}


@rule(RULES, "trl.top_k trl.temperature trl.top_p trl.min_p", "training")
def one_token(given: Given) -> Said:
    """Sampling under which all completions of a group are the same."""
    for name, (is_greedy, instead) in _GREEDY.items():
        if is_greedy(value := given.number(f"trl.{name}")):
            yield f"trl.{name}", f"is {value:g}: {_SAME}. Write {instead}."


_OVERRULED = ("max_new_tokens", "max_tokens", "max_length", "temperature", "top_p", "top_k", "min_p")


@rule(RULES, "trl.generation_kwargs", "training")
def generation_kwargs(given: Given) -> Said:
    """A generation that is greedy, gives several completions, or overrules TRL, which scores it."""
    kwargs = given.written("trl.generation_kwargs")
    kwargs = kwargs if isinstance(kwargs, Mapping) else {}
    if keys := [key for key in (*_OVERRULED, "repetition_penalty") if key in kwargs]:
        what = f"holds {', '.join(keys)}: the generation would silently use another value than TRL, which scores it."
        yield f"{what} Write it under `trl:` (a length as max_completion_length)."
    if kwargs.get("do_sample") is False:
        yield f"holds do_sample: false: {_SAME}. Leave it out."
    if keys := [
        key for key in ("num_beams", "num_return_sequences", "n", "best_of") if kwargs.get(key, 1) not in (1, None)
    ]:
        yield f"holds {', '.join(keys)}: here each prompt gives one completion at a time. Leave it out."


@rule(RULES, "rewards environment", "file")
def environment_reward_without_one(given: Given) -> Said:
    """The reward of an environment, where there is none."""
    rewards = given.written("rewards")
    parts = [each.get("verifier") for each in rewards if isinstance(each, Mapping)] if isinstance(rewards, list) else []
    names = [part.get("name") if isinstance(part, Mapping) else part for part in parts]
    if "environment" in names and given.written("environment") is None:
        yield "name the verifier environment, and the run has none. Write `environment: …`, or another verifier."


@rule(RULES, "trl.seed seed", "file")
def seed_twice(given: Given) -> Said:
    """The seed, given twice."""
    if given.written("seed") is not None and given.wrote("trl.seed"):
        yield "is given, and `seed:` at the top level too. Delete one; `seed: null` takes back an inherited one."


_VLLM = "vllm_mode vllm_model_impl vllm_enable_sleep_mode vllm_structured_outputs_regex vllm_server_base_url "
_VLLM += "vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port vllm_gpu_memory_utilization "
_VLLM += "vllm_max_model_length vllm_tensor_parallel_size vllm_importance_sampling_correction "
_VLLM += "vllm_importance_sampling_mode vllm_importance_sampling_clip_max vllm_importance_sampling_clip_min "
_VLLM += "vllm_importance_sampling_cap"
_OF_A_SERVER = "vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port"
_OF_COLOCATION = "vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size vllm_enable_sleep_mode"
_CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
"""Losses that clip the ratio to [1 − epsilon, 1 + epsilon_high]."""


def _is(name: str, *words: Any) -> Callable[[Given], bool]:
    return lambda given: str(given[f"trl.{name}"]).rpartition(".")[2].lower() in map(str, words)


_READ_WITH: tuple[tuple[str, str, Callable[[Given], bool]], ...] = (
    (_VLLM, "trl.use_vllm is not true", lambda given: bool(given["trl.use_vllm"])),
    (_OF_A_SERVER, "trl.vllm_mode is not server", _is("vllm_mode", "server")),
    (_OF_COLOCATION, "trl.vllm_mode is not colocate: give it to `vllm serve`", _is("vllm_mode", "colocate")),
    ("num_train_epochs", "trl.max_steps says how long the run is", lambda given: not given.number("trl.max_steps") > 0),
    (
        "entropy_target entropy_coef_delta entropy_coef_max entropy_coef_min",
        "trl.use_adaptive_entropy is not true",
        _is("use_adaptive_entropy", "true"),
    ),
    ("ref_model_sync_steps ref_model_mixup_alpha", "trl.sync_ref_model is not true", _is("sync_ref_model", "true")),
    ("save_steps", "trl.save_strategy is not steps", _is("save_strategy", "steps")),
    ("sapo_temperature_neg sapo_temperature_pos", "trl.loss_type is not sapo", _is("loss_type", "sapo")),
    (
        "vespo_k_neg vespo_k_pos vespo_lambda_neg vespo_lambda_pos",
        "trl.loss_type is not vespo",
        _is("loss_type", "vespo"),
    ),
    ("delta", "trl.loss_type does not clip the ratio", _is("loss_type", *_CLIPPED)),
    ("do_train do_predict", "no run reads it", lambda given: False),
    (
        "max_tool_calling_iterations",
        "the run has neither tools nor an environment",
        lambda given: bool(given.written("tools") or given.written("environment")),
    ),
)
"""Names of ``trl:``, why they are not read, when they are."""


@rule(RULES, "trl vllm model.revision", severity="warning")
def no_effect(given: Given) -> Said:
    """A setting that the others leave unread."""
    for names, reason, is_read in _READ_WITH:
        unread = (
            []
            if is_read(given)
            else [path for name in names.split() if given.written(path := f"trl.{name}") not in (None, [])]
        )
        for path in unread:
            yield path, f"has no effect, for {reason}. `{path.removeprefix('trl.')}: null` takes back an inherited one."
    if given.written("vllm") is not None and not given["trl.use_vllm"]:
        yield "vllm", "has no effect, for trl.use_vllm is not true. `vllm: null` takes back an inherited one."
    if given.written("model.revision") and Path(str(given.written("model.name_or_path"))).is_dir():
        yield "model.revision", "has no effect, for a folder has no revisions. Leave it out."


_ENGINE_DIFFERENCE = 0.03
"""Standard deviation of a token's log-probability between vLLM and the trainer under bfloat16; assumed."""


@rule(RULES, "trl.vllm_importance_sampling_mode", severity="warning")
def correction_of_long_responses(given: Given) -> Said:
    """A correction of vLLM by whole responses, where they are long."""
    mode, length = str(given["trl.vllm_importance_sampling_mode"]), given.number("trl.max_completion_length")
    bound = given.number("trl.vllm_importance_sampling_clip_max")
    deviation = _ENGINE_DIFFERENCE * math.sqrt(max(length, 1))
    corrects = given["trl.use_vllm"] and given["trl.vllm_importance_sampling_correction"] is True
    lower = given.number("trl.vllm_importance_sampling_clip_min")
    if not (corrects and mode.startswith("sequence") and bound > 0) or given["trl.bf16"] is False or lower > 0:
        return
    # log ρ is normal with mean −σ²/2, for the engine has sampled: E ρ = 1, of which the bound cuts the upper end off
    beyond = math.log(bound) / deviation
    left = NormalDist().cdf(beyond - deviation / 2)
    if mode.endswith("truncate"):
        left += bound * NormalDist().cdf(-beyond - deviation / 2)
    if left < 1 - NOTABLE_CHANGE:
        yield (
            f"is {mode}: if vLLM and the trainer differ by {_ENGINE_DIFFERENCE:g} a token (assumed for bfloat16), then "
            f"over max_completion_length = {length:,.0f} tokens {left:.0%} of the gradient are below "
            f"vllm_importance_sampling_clip_max = {bound:g}. Write {mode.replace('sequence', 'token')}."
        )


@rule(RULES, "algorithm.coefficient", severity="warning")
def coefficient_under_rounding(given: Given) -> Said:
    """A coefficient that rounding changes, where completions are long."""
    if abs(given.coefficient_under_rounding - 1) > NOTABLE_CHANGE:
        yield (
            f"would be {given.coefficient_under_rounding:.2g} times as large on average by rounding alone, if log π "
            "changes by 0.01 a token from one pass to another (assumed for half precision) and completions have "
            f"{given.number('trl.max_completion_length'):,.0f} tokens (trl.max_completion_length). Write its geometric "
            "form, or train each rollout batch in one optimizer step."
        )
