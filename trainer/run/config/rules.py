"""Settings of a run that contradict each other, or have no effect: one table of rules.

A rule is a generator of problems, none where its settings go together; `rules_broken` asks those of one moment. A
setting is named by its dotted path; of TRL's arguments the default counts where the file gives none.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from pydantic_core import InitErrorDetails

from evenkeel.trainer.run.config.problems import problem
from evenkeel.trainer.run.config.trl_arguments import grpo_default
from evenkeel.trainer.step.options import NOTABLE_CHANGE

Severity = Literal["refuse", "warn"]
Moment = Literal["file", "parts", "arguments"]
Problems = Iterator[tuple[str, str]]
"""What is wrong with its values, and what to write instead."""


@dataclass(frozen=True)
class Given:
    """What a rule may ask.

    Attributes:
        run: the run as plain data: of what a file leaves out only the defaults of TRL are known.
        heaviest_token_weight: on the tiny example; 1 where it is not known.
        coefficient_under_rounding: its mean as a multiple of what it is without (`trial.coefficient_under_noise`); 1
            where it is not known, and where a run has no rounding or no ratio.
    """

    run: Mapping[str, Any]
    heaviest_token_weight: float = 1.0
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


@dataclass(frozen=True)
class Rule:
    """One entry of the table.

    Attributes:
        code: its name.
        settings: what it is about; a refusal is shown at the first.
        severity: ``refuse``, or ``warn`` where a run would start and probably not do what was meant.
        moment: ``file`` = of the settings alone; ``parts`` = of the built parts; ``arguments`` = of TRL's arguments
            (`evenkeel.trainer.run.schedule`).
        training_only: it is not asked of a file that is only evaluated.
        about: what does not go together, for the table of all rules.
    """

    code: str
    settings: tuple[str, ...]
    severity: Severity
    moment: Moment
    training_only: bool
    about: str
    problems: Callable[[Any], Problems]


RULES: list[Rule] = []
"""All of them, in the order in which they are asked."""


def rule(
    about: str,
    *settings: str,
    code: str = "",
    severity: Severity = "refuse",
    moment: Moment = "file",
    training_only: bool = False,
    table: list[Rule] = RULES,
) -> Callable[[Callable[[Any], Problems]], Callable[[Any], Problems]]:
    """Enter a generator of problems into the table of rules; without a ``code`` it has the function's name."""

    def enter(problems: Callable[[Any], Problems]) -> Callable[[Any], Problems]:
        name = code or problems.__name__.replace("_", "-")
        table.append(Rule(name, settings, severity, moment, training_only, about, problems))
        return problems

    return enter


def rules_broken(rules: list[Rule], given: Given) -> Iterator[tuple[Rule, str, str]]:
    """What is wrong by each rule of which the run names a setting, and what to write."""
    for each in rules:
        if any(map(given.wrote, each.settings)):
            for what, instead in each.problems(given):
                yield each, what, instead


def conflicts(run: Mapping[str, Any], *, trains: bool = True) -> Iterator[InitErrorDetails]:
    """The problems of a run's plain data by the rules that refuse a file; values of a wrong type break no rule.

    Args:
        trains: the run is not only evaluated.
    """
    given = Given(run)
    refusing = [each for each in RULES if (each.severity, each.moment) == ("refuse", "file")]
    for each, what, instead in rules_broken([e for e in refusing if trains or not e.training_only], given):
        place = each.settings[0]
        yield problem(each.code, what, instead, tuple(place.split(".")))


# Refused in training: a group whose completions are all the same, and settings of TRL that undo one another.

_CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
"""Losses that clip the ratio to [1 − epsilon, 1 + epsilon_high]."""
_OVERRULED = {"max_new_tokens": "max_completion_length", "max_tokens": "max_completion_length"} | {
    "max_length": "max_completion_length",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")},
}
"""Key of ``trl.generation_kwargs`` → the argument of TRL that it would silently replace."""
_SAME = "so all completions of a group are the same and every advantage is 0"


def _only_one_token(name: str, condition: Callable[[float], bool], why: str, instead: str) -> None:
    path, about = f"trl.{name}", f"A {name} under which all completions of a group are the same"

    @rule(about, path, code=f"one-token-{name.replace('_', '-')}", training_only=True)
    def _(given: Given) -> Problems:
        if condition(given.number(path)):
            yield f"is {given[path]:g}: {why}, {_SAME}.", instead


_only_one_token(
    "top_k", lambda k: k == 1, "only the most probable token is drawn", "Write top_k: 0, which draws from all."
)
_only_one_token(
    "temperature",
    lambda t: 0 < t < 0.01,
    "practically only the most probable token is drawn",
    "Write temperature: 1.0, or at least 0.01; greedy answers are for `evaluation: {greedy: true}`.",
)
_only_one_token(
    "top_p",
    lambda p: 0 < p < 0.05,
    "the most probable token nearly always has that share alone",
    "Write top_p: 1.0, or at least 0.05.",
)
_only_one_token(
    "min_p",
    lambda p: p > 0.99,
    "only tokens as probable as the most probable one are drawn",
    "Leave it out, or write a small share such as 0.05.",
)


def _kwargs(given: Given) -> Mapping[str, Any]:
    kwargs = given.written("trl.generation_kwargs")
    return kwargs if isinstance(kwargs, Mapping) else {}


@rule(
    "A length or a sampling setting given to the generation alone, not to TRL",
    "trl.generation_kwargs",
    training_only=True,
)
def generation_kwargs_overrule(given: Given) -> Problems:
    if keys := [key for key in _OVERRULED if key in _kwargs(given)]:
        written = ", ".join(f"{name}: …" for name in dict.fromkeys(_OVERRULED[key] for key in keys))
        what = f"holds {', '.join(keys)}: the generation would silently use another value than TRL, which scores it."
        yield what, f"Write {written} under `trl:`."


@rule("Greedy completions in training", "trl.generation_kwargs", training_only=True)
def generation_kwargs_greedy(given: Given) -> Problems:
    if given.written("trl.generation_kwargs.do_sample") is False:
        what = f"holds do_sample: false: only the most probable token is taken, {_SAME}."
        yield what, "Leave do_sample out; greedy answers are for `evaluation: {greedy: true}`."


@rule("Several completions of a prompt at a time", "trl.generation_kwargs", training_only=True)
def generation_kwargs_several(given: Given) -> Problems:
    several = ("num_beams", "num_return_sequences", "n", "best_of")
    if keys := [key for key in several if _kwargs(given).get(key, 1) not in (1, None)]:
        what = f"holds {', '.join(keys)}: here each prompt gives one completion at a time, drawn from the policy."
        yield what, "Leave it out; num_generations says how many completions a group has."


def _clips(given: Given) -> bool:
    return given["trl.loss_type"] in _CLIPPED and not given.written("algorithm.coefficient")


@rule("A clip that lets probabilities fall further than rise", "trl.epsilon_high", "trl.epsilon", training_only=True)
def epsilon_high_below_epsilon(given: Given) -> Problems:
    low = given["trl.epsilon"]
    if _clips(given) and given.number("trl.epsilon_high") < given.number("trl.epsilon"):
        yield (
            f"is {given['trl.epsilon_high']:g}, and epsilon is {low:g}: probabilities could fall further than rise, "
            "the reverse of what the two are for.",
            f"Write a number of {low:g} or more (0.28 is usual), or leave it out for the same clip on both sides.",
        )


@rule(
    "A bound of negative advantages inside the clip",
    "trl.delta",
    "trl.epsilon_high",
    "trl.epsilon",
    training_only=True,
)
def delta_inside_the_clip(given: Given) -> Problems:
    upper = "trl.epsilon" if given["trl.epsilon_high"] is None else "trl.epsilon_high"
    bound = 1 + given.number(upper)
    if _clips(given) and given.number("trl.delta") <= bound:
        yield (
            f"is {given['trl.delta']:g}, which is inside the clip: ratios are clipped above 1 + epsilon_high = "
            f"{bound:g}, and delta bounds larger ratios of negative advantages.",
            f"Write a number above {bound:g}, such as 4.0, or leave it out.",
        )


@rule("A number of warm-up steps that is not whole", "trl.warmup_steps", training_only=True)
def warmup_of_a_fraction(given: Given) -> Problems:
    steps = given.number("trl.warmup_steps")
    if steps > 1 and math.isfinite(steps) and not steps.is_integer():
        what = f"is {steps:g}: from 1 on it counts steps, and the fraction would be cut off."
        yield what, f"Write warmup_steps: {math.ceil(steps)}, or a share of all steps below 1."


@rule("A directory of runs in place of the run's own", "output_dir", training_only=True)
def output_dir_without_a_name(given: Given) -> Problems:
    folder = given.written("output_dir")
    if isinstance(folder, str) and not Path(folder).name:
        what = f"is {folder!r}: a run needs a directory of its own inside that one."
        yield what, "Write one with a name, such as runs/first."


@rule("The best model, by no metric", "trl.load_best_model_at_end", "evaluation.keep_best", training_only=True)
def best_model_of_no_metric(given: Given) -> Problems:
    if given["trl.load_best_model_at_end"] is True and not given.written("evaluation.keep_best"):
        what = "is true, and no metric is named by which a model is the best."
        yield (
            what,
            "Delete it; `evaluation: {every_steps: …, keep_best: eval/test/avg@1}` keeps the best checkpoint.",
        )


@rule("Evaluations without held-out rows", "evaluation.every_steps", "data.test", training_only=True)
def evaluation_without_rows(given: Given) -> Problems:
    steps, data = given.written("evaluation.every_steps"), given.written("data")
    if steps is not None and isinstance(data, Mapping) and data.get("test") is None:
        what = f"is {steps}, and there are no held-out rows to evaluate on."
        yield (
            what,
            "Give some: `data: {test: …}`, or delete every_steps; `every_steps: null` takes back an inherited one.",
        )


@rule("The reward of an environment, where there is none", "rewards", "environment")
def environment_reward_without_one(given: Given) -> Problems:
    rewards = given.written("rewards")
    parts = [each.get("verifier") for each in rewards if isinstance(each, Mapping)] if isinstance(rewards, list) else []
    names = [part.get("name") if isinstance(part, Mapping) else part for part in parts]
    if "environment" in names and given.written("environment") is None:
        what = "name the verifier environment, and the run has none that could give a reward."
        yield what, "Write `environment: …`, or another verifier."


@rule("An adapter for something else than a causal language model", "model.lora.task_type", training_only=True)
def lora_task_type(given: Given) -> Problems:
    if (kind := given.written("model.lora.task_type")) not in (None, "CAUSAL_LM"):
        what = f"is {kind!r}, and the policy is a causal language model."
        yield what, "Leave it out, or write task_type: CAUSAL_LM."


@rule("All weights trained in float16 without a scaled loss", "model.dtype", "trl.fp16", training_only=True)
def float16_without_a_scaler(given: Given) -> Problems:
    if given.written("model.dtype") == "float16" and not given["trl.fp16"] and not given.written("model.lora"):
        yield (
            "is float16, and all weights are trained: nothing scales the loss, so small gradients become 0 and small "
            "updates are lost.",
            "Write dtype: bfloat16, or dtype: float32 with `trl: {fp16: true}`.",
        )


# Refused of every run: two sections that contradict each other.

BATCH_WORDS = ("prompts_per_rollout", "sequences_per_update")
_LARGEST_SHARE = 0.9


@rule("The seed, given twice", "trl.seed", "seed")
def seed_twice(given: Given) -> Problems:
    if given.written("seed") is not None and given.wrote("trl.seed"):
        what = f"is {given.written('trl.seed')!r}, while `seed:` at the top level is {given.written('seed')!r}."
        yield what, "Delete one of the two; `seed: null` takes back an inherited one."


def _uses_vllm(given: Given, mode: str = "") -> bool:
    return bool(given.written("trl.use_vllm")) and (not mode or given["trl.vllm_mode"] == mode)


@rule("How far vLLM is trusted, where it does not generate", "vllm", "trl.use_vllm")
def vllm_section_without_vllm(given: Given) -> Problems:
    if given.written("vllm") is not None and not _uses_vllm(given):
        what = "is given, but trl.use_vllm is not true: transformers generates, and there is no engine to check."
        yield (
            what,
            "Write `trl: {use_vllm: true}` too, or delete the section; `vllm: null` takes back an inherited one.",
        )


def _unread_in_mode(mode: str, names: str, why: str, instead: str) -> None:
    """Enter a rule for each of TRL's settings that vLLM does not read in this mode."""
    for name in names.split():
        path, code = f"trl.vllm_{name}", f"vllm-{name.replace('_', '-')}-while-{mode}"

        @rule(f"A setting of vLLM that its mode {mode} does not read", path, "trl.vllm_mode", code=code)
        def _(given: Given, path: str = path) -> Problems:
            if _uses_vllm(given, mode) and (value := given.written(path)) is not None:
                key = path.removeprefix("trl.")
                yield (
                    f"is {value!r}, but vllm_mode is {mode}: {why}.",
                    f"{instead}; `{key}: null` takes back an inherited one.",
                )


_unread_in_mode(
    "colocate",
    "server_base_url server_host server_port server_timeout group_port",
    "an engine in the trainer's process has no server",
    "Delete it",
)
_unread_in_mode(
    "server",
    "gpu_memory_utilization max_model_length tensor_parallel_size enable_sleep_mode model_impl",
    "the server has its own, given when it was started",
    "Delete it, and give it to `vllm serve`",
)


@rule("A share of the GPU for vLLM that leaves no room to train", "trl.vllm_gpu_memory_utilization")
def vllm_takes_the_gpu(given: Given) -> Problems:
    share = given.written("trl.vllm_gpu_memory_utilization")
    if _uses_vllm(given, "colocate") and isinstance(share, float) and share > _LARGEST_SHARE:
        yield (
            f"is {share:g}: vLLM would take that share of each GPU, and the trainer's weights, gradients and optimizer "
            "are on the same one.",
            f"Write {_LARGEST_SHARE} at most; TRL's default is 0.3, the recipes' 0.4.",
        )


_CLIP_BOUND = "trl.vllm_importance_sampling_clip"


@rule(
    "A correction that truncates, without a bound",
    f"{_CLIP_BOUND}_max",
    f"{_CLIP_BOUND}_min",
    "trl.vllm_importance_sampling_mode",
)
def nothing_to_truncate_to(given: Given) -> Problems:
    truncates = str(given.written("trl.vllm_importance_sampling_mode")).endswith("truncate")
    bounded = given[f"{_CLIP_BOUND}_min"] is not None or given[f"{_CLIP_BOUND}_max"] is not None
    if _uses_vllm(given) and truncates and not bounded and given["trl.vllm_importance_sampling_correction"]:
        what = "is null, and clip_min is too: a mode that truncates needs a bound, and TRL's clamp fails without one."
        yield what, "Give one of the two, such as 3.0."


def _batch_words(given: Given) -> list[str]:
    return [name for name in BATCH_WORDS if given.written(f"algorithm.{name}") is not None]


def _alone(name: str, missing: str) -> None:
    about, code = "One of the two settings that cut a batch, without the other", f"{name.replace('_', '-')}-alone"

    @rule(about, f"algorithm.{name}", f"algorithm.{missing}", code=code)
    def _(given: Given) -> Problems:
        if _batch_words(given) == [name]:
            what = f"is given without {missing}, and one alone does not say how a rollout is cut into updates."
            yield what, f"Give {missing} too."


_alone(*BATCH_WORDS)
_alone(*BATCH_WORDS[::-1])


def _batch_cut_twice(name: str) -> None:
    paths = (f"trl.{name}", *(f"algorithm.{word}" for word in BATCH_WORDS))

    @rule("How a batch is cut, given twice", *paths, code=f"{name.replace('_', '-')}-beside-algorithm")
    def _(given: Given) -> Problems:
        if (words := _batch_words(given)) and given.wrote(paths[0]):
            what = f"is {given.written(paths[0])!r}, but algorithm.{words[0]} already says how a batch is cut."
            yield what, f"Delete {name}."


for _name in ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps"):
    _batch_cut_twice(_name)


# Warned of: a correction of vLLM that long responses lose.

_ENGINE_DIFFERENCE = 0.03
"""Standard deviation of a token's log-probability between vLLM and the trainer under bfloat16; assumed."""


@rule(
    "A correction of vLLM by whole responses, where they are long",
    "trl.vllm_importance_sampling_mode",
    "trl.use_vllm",
    severity="warn",
)
def correction_of_long_responses(given: Given) -> Problems:
    mode, length = str(given["trl.vllm_importance_sampling_mode"]), given.number("trl.max_completion_length")
    bound, deviation = given.number(f"{_CLIP_BOUND}_max"), _ENGINE_DIFFERENCE * math.sqrt(max(length, 1))
    corrects = _uses_vllm(given) and given["trl.vllm_importance_sampling_correction"] is True
    half = given["trl.bf16"] is not False
    if not (corrects and half and mode.startswith("sequence") and bound > 0) or given.number(f"{_CLIP_BOUND}_min") > 0:
        return
    # log ρ is normal with mean −σ²/2, for the engine has sampled: E ρ = 1, of which the bound cuts the upper end off
    beyond = math.log(bound) / deviation
    left = NormalDist().cdf(beyond - deviation / 2)
    if mode.endswith("truncate"):
        left += bound * NormalDist().cdf(-beyond - deviation / 2)
    if left < 1 - NOTABLE_CHANGE:
        yield (
            f"trl.vllm_importance_sampling_mode is {mode}: the ratio of a response is the product over its tokens. If "
            f"vLLM and the trainer differ by {_ENGINE_DIFFERENCE:g} a token (assumed for bfloat16; "
            "sampling/sampling_logp_difference/mean shows 0.8 of it), its logarithm over "
            f"max_completion_length = {length:,.0f} tokens has mean {-(deviation**2) / 2:.2g} and standard deviation "
            f"{deviation:.2g}: below vllm_importance_sampling_clip_max = {bound:g} are {left:.0%} of the gradient, and "
            "long responses are hardly trained.",
            f"Write vllm_importance_sampling_mode: {mode.replace('sequence', 'token')}, whose ratios stay near 1 at "
            "any length.",
        )


# Warned of: settings that a run would not read.


def _without_effect(
    code: str, names: str, reason: str, is_read: Callable[[Given], bool], instead: str, section: str = "trl"
) -> None:
    """Enter a rule for settings of a section that are read only where another one is as it should be."""
    paths = tuple(f"{section}.{name}" for name in names.split())

    @rule(f"No effect: {reason}", *paths, code=code, severity="warn")
    def _(given: Given) -> Problems:
        if (written := [path for path in paths if given.written(path) not in (None, [])]) and not is_read(given):
            yield f"{', '.join(written)} {'has' if len(written) == 1 else 'have'} no effect, for {reason}.", instead


_without_effect(
    "vllm-without-vllm",
    "vllm_mode vllm_model_impl vllm_enable_sleep_mode vllm_structured_outputs_regex vllm_server_base_url "
    "vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port vllm_gpu_memory_utilization "
    "vllm_max_model_length vllm_tensor_parallel_size vllm_importance_sampling_correction "
    "vllm_importance_sampling_mode vllm_importance_sampling_clip_max vllm_importance_sampling_clip_min "
    "vllm_importance_sampling_cap",
    "trl.use_vllm is not true and transformers generates",
    lambda given: bool(given["trl.use_vllm"]),
    "Write use_vllm: true too, or leave them out.",
)
_without_effect(
    "epochs-beside-steps",
    "num_train_epochs",
    "trl.max_steps says how long the run is",
    lambda given: not given.number("trl.max_steps") > 0,
    "Leave one of the two out; `max_steps: -1` takes back an inherited one.",
)
_without_effect(
    "adaptive-entropy",
    "entropy_target entropy_coef_delta entropy_coef_max entropy_coef_min",
    "trl.use_adaptive_entropy is not true",
    lambda given: bool(given["trl.use_adaptive_entropy"]),
    "Write use_adaptive_entropy: true too, or leave them out.",
)
_without_effect(
    "reference-sync",
    "ref_model_sync_steps ref_model_mixup_alpha",
    "trl.sync_ref_model is not true",
    lambda given: bool(given["trl.sync_ref_model"]),
    "Write sync_ref_model: true too, or leave them out.",
)
_without_effect(
    "saving",
    "save_steps",
    "trl.save_strategy is not steps",
    lambda given: str(given["trl.save_strategy"]).rpartition(".")[2].lower() == "steps",
    "Write save_strategy: steps, or leave it out.",
)
_without_effect(
    "sapo",
    "sapo_temperature_neg sapo_temperature_pos",
    "trl.loss_type is not sapo",
    lambda given: given["trl.loss_type"] == "sapo",
    "Write loss_type: sapo too, or leave them out.",
)
_without_effect(
    "vespo",
    "vespo_k_neg vespo_k_pos vespo_lambda_neg vespo_lambda_pos",
    "trl.loss_type is not vespo",
    lambda given: given["trl.loss_type"] == "vespo",
    "Write loss_type: vespo too, or leave them out.",
)
_without_effect(
    "delta",
    "delta",
    "trl.loss_type does not clip the ratio on two sides",
    lambda given: given["trl.loss_type"] in _CLIPPED,
    f"Take one of {', '.join(_CLIPPED)}, or leave it out.",
)
_without_effect(
    "do-train",
    "do_train do_predict",
    "only scripts of transformers' examples read it",
    lambda given: False,
    "Leave it out; `evenkeel evaluate` evaluates without training.",
)
_without_effect(
    "tool-calls-without-tools",
    "max_tool_calling_iterations",
    "the run has neither tools nor an environment",
    lambda given: bool(given.written("tools") or given.written("environment")),
    "Write `tools: […]` too, or leave it out.",
)
_without_effect(
    "revision-of-a-folder",
    "revision",
    "model.name_or_path is a folder, which has no revisions",
    lambda given: not Path(str(given.written("model.name_or_path"))).is_dir(),
    "Name the model by its hub id, or leave it out.",
    "model",
)


# Warned of once the parts are built.

_HEAVIEST = 1e3


@rule(
    "Token weights under which only a few tokens are trained", "algorithm.token_weight", severity="warn", moment="parts"
)
def heavy_token_weights(given: Given) -> Problems:
    if given.heaviest_token_weight > _HEAVIEST:
        yield (
            f"algorithm.token_weight gives a token a weight of {given.heaviest_token_weight:.3g} on a tiny example, "
            "and 1 leaves a token as it is: only a few tokens would be trained.",
            "Divide the weights by their mean, or bound them.",
        )


@rule(
    "A coefficient that rounding changes, where completions are long",
    "algorithm.coefficient",
    severity="warn",
    moment="parts",
)
def coefficient_under_rounding(given: Given) -> Problems:
    if abs(given.coefficient_under_rounding - 1) > NOTABLE_CHANGE:
        yield (
            f"algorithm.coefficient: rounding alone would make it {given.coefficient_under_rounding:.2g} times as "
            "large on average, if log π changes by 0.01 a token from one pass to another (assumed for half precision; "
            "rounding/log_prob/mean_abs shows 0.8 of it) and completions have "
            f"{given.number('trl.max_completion_length'):,.0f} tokens (trl.max_completion_length). In the first "
            "optimizer step of a rollout batch π_old is taken from the training pass itself; the later steps train as "
            "with another learning rate.",
            "Write its geometric form (weight: geometric for dfpo_min_replace, dfpo_orthogonal and trajectory_ratio, "
            "ratio: geometric for topr), or train each rollout batch in one optimizer step.",
        )
