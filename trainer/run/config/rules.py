"""Settings of a run that cannot be meant, or have no effect: one table for each moment at which they are looked at.

A rule is a condition on the settings, the words, how grave it is, and when it is looked at; `rules_broken` asks them
all. A setting is named by its dotted path; of TRL's arguments the default counts where the file gives none.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainer.run.config.trl_arguments import grpo_default


@dataclass(frozen=True)
class Given:
    """What a rule may ask.

    Attributes:
        run: the run as plain data: of what a file leaves out only the defaults of TRL are known.
        environment: its variables, where they count.
        heaviest_token_weight: on the tiny example; 1 where it is not known.
    """

    run: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    heaviest_token_weight: float = 1.0

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
        """The setting where it is a number, else NaN, of which no comparison holds."""
        value = self[path]
        return math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


@dataclass(frozen=True)
class Rule:
    """One thing that is not to be.

    Attributes:
        code: its name.
        settings: what it is about; a refusal stands at the first.
        severity: ``refuse``, or ``warn`` where a run would do what is said and it is hardly meant.
        moment: ``file`` = of the settings alone; ``start`` = of the environment too; ``parts`` = of the built parts;
            ``arguments`` = of TRL's arguments (`trainer.run.schedule`).
        condition: whether it is so. Asked of `Given`; at the moment ``arguments`` of `trainer.run.schedule.Arguments`.
        message: what is wrong with its values, and what to write instead.
        about: what is not to be, in words, for the table of all rules.
    """

    code: str
    settings: tuple[str, ...]
    severity: Literal["refuse", "warn"]
    moment: Literal["file", "start", "parts", "arguments"]
    condition: Callable[[Any], bool]
    message: Callable[[Any], tuple[str, str]]
    about: str


_CLIPPED = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo")
"""Losses that clip the ratio to [1 − epsilon, 1 + epsilon_high]."""
_OF_TRL = {"max_new_tokens": "max_completion_length", "max_tokens": "max_completion_length"} | {
    "max_length": "max_completion_length",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")},
}
"""Key of ``trl.generation_kwargs`` → the argument of TRL's that it would overrule in silence."""
_SEVERAL = ("num_beams", "num_return_sequences", "n", "best_of")
_SAME = "so that all completions of a group are the same and every advantage is 0"


def _overruled(given: Given) -> dict[str, str]:
    kwargs = given.written("trl.generation_kwargs")
    return {key: name for key, name in _OF_TRL.items() if isinstance(kwargs, Mapping) and key in kwargs}


def _several(given: Given) -> list[str]:
    kwargs = given.written("trl.generation_kwargs")
    return [key for key in _SEVERAL if isinstance(kwargs, Mapping) and kwargs.get(key, 1) not in (1, None)]


def _high(given: Given) -> float:
    """ε above 1, as the loss takes it."""
    return given.number("trl.epsilon_high") if given["trl.epsilon_high"] is not None else given.number("trl.epsilon")


def _clips(given: Given) -> bool:
    return given["trl.loss_type"] in _CLIPPED and not given.written("algorithm.coefficient")


def _only_one_token(name: str, condition: Callable[[float], bool], why: str, instead: str) -> Rule:
    path = f"trl.{name}"
    return Rule(
        f"one_token_{name}",
        (path,),
        "refuse",
        "file",
        lambda given: condition(given.number(path)),
        lambda given: (f"is {given[path]:g}: {why}, {_SAME}.", instead),
        f"A {name} under which all completions of a group are the same",
    )


FILE_RULES = (
    _only_one_token(
        "top_k", lambda k: k == 1, "only the most probable token is drawn", "Write top_k: 0, which draws from all."
    ),
    _only_one_token(
        "temperature",
        lambda t: 0 < t < 0.01,
        "nothing but the most probable token is drawn",
        "Write temperature: 1.0, or at least 0.01; greedy answers are for `evaluation: {greedy: true}`.",
    ),
    _only_one_token(
        "top_p",
        lambda p: 0 < p < 0.05,
        "the most probable token nearly always reaches that share alone",
        "Write top_p: 1.0, or at least 0.05.",
    ),
    _only_one_token(
        "min_p",
        lambda p: p > 0.99,
        "only tokens as probable as the most probable one are drawn",
        "Leave it out, or write a small share such as 0.05.",
    ),
    Rule(
        "generation_kwargs_overrule",
        ("trl.generation_kwargs",),
        "refuse",
        "file",
        lambda given: bool(_overruled(given)),
        lambda given: (
            f"holds {', '.join(_overruled(given))}: it would overrule what TRL scores and cuts completions by, in "
            "silence.",
            f"Write {', '.join(f'{name}: …' for name in dict.fromkeys(_overruled(given).values()))} under `trl:`.",
        ),
        about="What TRL scores and cuts completions by, given to the generation alone",
    ),
    Rule(
        "generation_kwargs_greedy",
        ("trl.generation_kwargs",),
        "refuse",
        "file",
        lambda given: given.written("trl.generation_kwargs.do_sample") is False,
        lambda given: (
            f"holds do_sample: false: only the most probable token is taken, {_SAME}.",
            "Leave do_sample out; greedy answers are for `evaluation: {greedy: true}`.",
        ),
        about="Greedy completions in training",
    ),
    Rule(
        "generation_kwargs_several",
        ("trl.generation_kwargs",),
        "refuse",
        "file",
        lambda given: bool(_several(given)),
        lambda given: (
            f"holds {', '.join(_several(given))}: a prompt gives one completion at a time here, drawn from the policy.",
            "Leave it out; num_generations says how many completions a group has.",
        ),
        about="Several completions of a prompt at a time",
    ),
    Rule(
        "epsilon_high_below_epsilon",
        ("trl.epsilon_high", "trl.epsilon"),
        "refuse",
        "file",
        lambda given: _clips(given) and given.number("trl.epsilon_high") < given.number("trl.epsilon"),
        lambda given: (
            f"is {given['trl.epsilon_high']:g}, and epsilon is {given['trl.epsilon']:g}: probabilities could fall "
            "further than rise, the reverse of what the two are for.",
            f"Write a number of {given['trl.epsilon']:g} or more (0.28 is usual), or leave it out for the same clip.",
        ),
        about="A clip that lets probabilities fall further than rise",
    ),
    Rule(
        "delta_inside_the_clip",
        ("trl.delta", "trl.epsilon_high", "trl.epsilon"),
        "refuse",
        "file",
        lambda given: _clips(given) and given.number("trl.delta") <= 1 + _high(given),
        lambda given: (
            f"is {given['trl.delta']:g}, which lies inside the clip: ratios are clipped above 1 + epsilon_high = "
            f"{1 + _high(given):g}, and delta bounds those of negative advantages from there on.",
            f"Write a number above {1 + _high(given):g}, such as 4.0, or leave it out.",
        ),
        about="A bound of negative advantages inside the clip",
    ),
    Rule(
        "warmup_of_a_fraction",
        ("trl.warmup_steps",),
        "refuse",
        "file",
        lambda given: given.number("trl.warmup_steps") > 1 and not given.number("trl.warmup_steps").is_integer(),
        lambda given: (
            f"is {given['trl.warmup_steps']:g}: from 1 on it counts steps, and the fraction would be cut off.",
            f"Write warmup_steps: {math.ceil(given['trl.warmup_steps'])}, or below 1 the share of all steps.",
        ),
        about="A number of warm-up steps that is not whole",
    ),
    Rule(
        "output_dir_without_a_name",
        ("output_dir",),
        "refuse",
        "file",
        lambda given: isinstance(given.run.get("output_dir"), str) and not Path(given.run["output_dir"]).name,
        lambda given: (
            f"is {given.run['output_dir']!r}: a run has a directory of its own, which another run may stand beside.",
            "Write one with a name, such as runs/first.",
        ),
        about="A directory of runs in place of the run's own",
    ),
    Rule(
        "reference_sync_without_reference",
        ("trl.sync_ref_model", "trl.beta"),
        "refuse",
        "file",
        lambda given: given["trl.sync_ref_model"] is True and given.number("trl.beta") == 0,
        lambda given: (
            "is true, and beta is 0: without a KL penalty there is no reference model to be synchronised.",
            "Write beta: 0.001 or more, or delete sync_ref_model.",
        ),
        about="A reference that is synchronised, where there is none",
    ),
    Rule(
        "best_model_of_no_metric",
        ("trl.load_best_model_at_end", "evaluation.keep_best"),
        "refuse",
        "file",
        lambda given: given["trl.load_best_model_at_end"] is True and not given.written("evaluation.keep_best"),
        lambda given: (
            "is true, and nothing says by which metric a model is the best.",
            "Delete it; `evaluation: {every_steps: …, keep_best: eval/test/avg@1}` keeps the best checkpoint.",
        ),
        about="The best model, by no metric",
    ),
    Rule(
        "evaluation_without_rows",
        ("evaluation.every_steps", "data.test"),
        "refuse",
        "file",
        lambda given: given.written("evaluation.every_steps") is not None and given.written("data.test") is None,
        lambda given: (
            f"is {given.written('evaluation.every_steps')}, and there are no held-out rows to evaluate on.",
            "Give some: `data: {test: …}`, or delete every_steps.",
        ),
        about="Evaluations without held-out rows",
    ),
    Rule(
        "lora_task_type",
        ("model.lora.task_type",),
        "refuse",
        "file",
        lambda given: given.written("model.lora.task_type") not in (None, "CAUSAL_LM"),
        lambda given: (
            f"is {given.written('model.lora.task_type')!r}, and the policy is a causal language model.",
            "Leave it out, or write task_type: CAUSAL_LM.",
        ),
        about="An adapter for something else than a causal language model",
    ),
    Rule(
        "float16_without_a_scaler",
        ("model.dtype", "trl.fp16"),
        "refuse",
        "file",
        lambda given: (
            given.written("model.dtype") == "float16" and not given["trl.fp16"] and not given.written("model.lora")
        ),
        lambda given: (
            "is float16, and all weights are trained: nothing scales the loss, so that small gradients are 0 and small "
            "updates are lost.",
            "Write dtype: bfloat16, or dtype: float32 with `trl: {fp16: true}`.",
        ),
        about="All weights trained in float16 without a scaled loss",
    ),
)
"""What is refused of the settings alone."""


_COLOCATE_ONLY = [
    "gpu_memory_utilization",
    "max_model_length",
    "tensor_parallel_size",
    "enable_sleep_mode",
    "model_impl",
]
_SERVER_ONLY = ["server_base_url", "server_host", "server_port", "server_timeout", "group_port"]
_LARGEST_SHARE = 0.9
_CLIP_BOUND = "trl.vllm_importance_sampling_clip"


def _of_the_other_mode(name: str, mode: str, other: str, instead: str) -> Rule:
    """A setting of TRL's that vLLM does not read in this mode."""
    key = f"vllm_{name}"
    return Rule(
        f"{key}_while_{mode}",
        (f"trl.{key}", "trl.vllm_mode"),
        "refuse",
        "file",
        lambda given: (
            bool(given.written("trl.use_vllm"))
            and given["trl.vllm_mode"] == mode
            and given.written(f"trl.{key}") is not None
        ),
        lambda given: (
            f"is {given.written(f'trl.{key}')!r}, but vllm_mode is {mode}: {other}.",
            f"{instead}; `{key}: null` takes back an inherited one.",
        ),
        f"A setting of vLLM that its mode {mode} does not read",
    )


def _draws_in_common(given: Given) -> bool:
    return given.written("common_random_numbers") is True


BATCH_WORDS = ("prompts_per_rollout", "sequences_per_update")
_TRL_BATCH = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")


def _batch_words(given: Given) -> list[str]:
    return [name for name in BATCH_WORDS if given.written(f"algorithm.{name}") is not None]


def _alone(name: str, missing: str) -> Rule:
    return Rule(
        f"{name}_alone",
        (f"algorithm.{name}", f"algorithm.{missing}"),
        "refuse",
        "file",
        lambda given: _batch_words(given) == [name],
        lambda given: (
            f"is given without {missing}, and one alone does not say how a rollout is cut into updates.",
            f"Give {missing} too.",
        ),
        "One of the two words for how a batch is cut",
    )


def _batch_said_twice(name: str) -> Rule:
    return Rule(
        f"{name}_beside_batch_words",
        (f"trl.{name}", *(f"algorithm.{word}" for word in BATCH_WORDS)),
        "refuse",
        "file",
        lambda given: bool(_batch_words(given)) and given.wrote(f"trl.{name}"),
        lambda given: (
            f"is {given.written(f'trl.{name}')!r}, but algorithm.{_batch_words(given)[0]} already says how a batch is "
            "cut.",
            f"Delete {name}.",
        ),
        "How a batch is cut, said twice",
    )


SECTION_RULES = (
    Rule(
        "seed_twice",
        ("trl.seed", "seed"),
        "refuse",
        "file",
        lambda given: given.written("seed") is not None and given.wrote("trl.seed"),
        lambda given: (
            f"is {given.written('trl.seed')!r}, while `seed:` at the top level is {given.written('seed')!r}.",
            "Delete one of the two; `seed: null` takes back an inherited one.",
        ),
        "The seed, said twice",
    ),
    Rule(
        "vllm_section_without_vllm",
        ("vllm", "trl.use_vllm"),
        "refuse",
        "file",
        lambda given: given.written("vllm") is not None and not given.written("trl.use_vllm"),
        lambda given: (
            "is given, but trl.use_vllm is not true: transformers generates, and there is no engine to check.",
            "Write `trl: {use_vllm: true}` too, or delete the section; `vllm: null` takes back an inherited one.",
        ),
        "How far vLLM is trusted, where it does not generate",
    ),
    *(_of_the_other_mode(name, "colocate", "a colocated engine has no server", "Delete it") for name in _SERVER_ONLY),
    *(
        _of_the_other_mode(
            name, "server", "the server has its own, from its start", "Delete it, and give it to `vllm serve`"
        )
        for name in _COLOCATE_ONLY
    ),
    Rule(
        "vllm_takes_the_gpu",
        ("trl.vllm_gpu_memory_utilization",),
        "refuse",
        "file",
        lambda given: (
            bool(given.written("trl.use_vllm"))
            and given["trl.vllm_mode"] == "colocate"
            and isinstance(share := given.written("trl.vllm_gpu_memory_utilization"), float)
            and share > _LARGEST_SHARE
        ),
        lambda given: (
            f"is {given.written('trl.vllm_gpu_memory_utilization'):g}: vLLM would take that share of each GPU, and the "
            "trainer's weights, gradients and optimizer lie on the same one.",
            f"Write {_LARGEST_SHARE} at most; TRL's default is 0.3, the recipes' 0.4.",
        ),
        "A share of the GPU for vLLM that leaves no room to train",
    ),
    Rule(
        "nothing_to_truncate_to",
        (f"{_CLIP_BOUND}_max", f"{_CLIP_BOUND}_min", "trl.vllm_importance_sampling_mode"),
        "refuse",
        "file",
        lambda given: (
            bool(given.written("trl.use_vllm"))
            and str(given.written("trl.vllm_importance_sampling_mode")).endswith("truncate")
            and given[f"{_CLIP_BOUND}_min"] is None
            and given[f"{_CLIP_BOUND}_max"] is None
            and bool(given["trl.vllm_importance_sampling_correction"])
        ),
        lambda given: (
            "is null and there is no clip_min: a mode that truncates has nothing to truncate to, and TRL's clamp "
            "fails.",
            "Give one of the two, such as 3.0.",
        ),
        "A correction that truncates, without a bound",
    ),
    Rule(
        "common_noise_with_vllm",
        ("common_random_numbers", "trl.use_vllm"),
        "refuse",
        "file",
        lambda given: _draws_in_common(given) and bool(given.written("trl.use_vllm")),
        lambda given: (
            "is true, but trl.use_vllm is true: vLLM draws tokens inside its engine, by a stream that depends on what "
            "else is in its batch, and takes no noise from outside.",
            "Delete it, or generate with transformers: delete trl.use_vllm and write `speed: {generation: compact}`.",
        ),
        "Common random numbers with vLLM",
    ),
    Rule(
        "common_noise_without_compact",
        ("common_random_numbers", "speed.generation"),
        "refuse",
        "file",
        lambda given: (
            _draws_in_common(given)
            and not given.written("trl.use_vllm")
            and (given.written("speed.generation") if given.wrote("speed.generation") else "trl") != "compact"
        ),
        lambda given: (
            "is true, but speed.generation is trl: transformers then draws from torch's stream, which depends on every "
            "token before.",
            "Write `speed: {generation: compact}` too.",
        ),
        "Common random numbers without compact generation",
    ),
    Rule(
        "skipped_scoring_without_planning",
        ("speed.skip_old_logps", "speed.microbatches"),
        "refuse",
        "file",
        lambda given: given.written("speed.skip_old_logps") is True and given.written("speed.microbatches") == "trl",
        lambda given: (
            "is true, but microbatches: trl asks for TRL's own path, bit for bit.",
            "Write `microbatches: planned` too, or delete it.",
        ),
        "The scoring of π_old left out on TRL's own path",
    ),
    _alone(*BATCH_WORDS),
    _alone(*BATCH_WORDS[::-1]),
    *map(_batch_said_twice, _TRL_BATCH),
)
"""What two sections say against each other, of every run."""


def _without_effect(code: str, names: str, needed: str, has_it: Callable[[Given], bool], instead: str) -> Rule:
    """Settings that are read only where another one is as it should be."""
    paths = tuple(names.split())

    def written(given: Given) -> list[str]:
        return [path for path in paths if given.written(path) not in (None, [])]

    return Rule(
        code,
        paths,
        "warn",
        "file",
        lambda given: bool(written(given)) and not has_it(given),
        lambda given: (
            f"{', '.join(written(given))} {'has' if len(written(given)) == 1 else 'have'} no effect, for {needed}.",
            instead,
        ),
        f"No effect: {needed}",
    )


def _reports_to_wandb(given: Given) -> bool:
    trackers = given.written("logging.report_to")
    return isinstance(trackers, list) and "wandb" in trackers


_VLLM = (
    "mode model_impl enable_sleep_mode structured_outputs_regex server_base_url server_host server_port server_timeout "
    "group_port gpu_memory_utilization max_model_length tensor_parallel_size importance_sampling_correction "
    "importance_sampling_mode importance_sampling_clip_max importance_sampling_clip_min importance_sampling_cap"
)

WITHOUT_EFFECT = (
    _without_effect(
        "vllm_without_vllm",
        " ".join(f"trl.vllm_{name}" for name in _VLLM.split()),
        "trl.use_vllm is not true and transformers generates",
        lambda given: bool(given["trl.use_vllm"]),
        "Write use_vllm: true too, or leave them out.",
    ),
    _without_effect(
        "epochs_beside_steps",
        "trl.num_train_epochs",
        "trl.max_steps says how long the run is",
        lambda given: not given.number("trl.max_steps") > 0,
        "Leave one of the two out; `max_steps: -1` takes back an inherited one.",
    ),
    _without_effect(
        "adaptive_entropy",
        "trl.entropy_target trl.entropy_coef_delta trl.entropy_coef_max trl.entropy_coef_min",
        "trl.use_adaptive_entropy is not true",
        lambda given: bool(given["trl.use_adaptive_entropy"]),
        "Write use_adaptive_entropy: true too, or leave them out.",
    ),
    _without_effect(
        "reference_sync",
        "trl.ref_model_sync_steps trl.ref_model_mixup_alpha",
        "trl.sync_ref_model is not true",
        lambda given: bool(given["trl.sync_ref_model"]),
        "Write sync_ref_model: true too, or leave them out.",
    ),
    _without_effect(
        "saving",
        "trl.save_steps",
        "trl.save_strategy does not save every so many steps",
        lambda given: str(given["trl.save_strategy"]).rpartition(".")[2].lower() == "steps",
        "Write save_strategy: steps, or leave it out.",
    ),
    _without_effect(
        "sapo",
        "trl.sapo_temperature_neg trl.sapo_temperature_pos",
        "trl.loss_type is not sapo",
        lambda given: given["trl.loss_type"] == "sapo",
        "Write loss_type: sapo too, or leave them out.",
    ),
    _without_effect(
        "vespo",
        "trl.vespo_k_neg trl.vespo_k_pos trl.vespo_lambda_neg trl.vespo_lambda_pos",
        "trl.loss_type is not vespo",
        lambda given: given["trl.loss_type"] == "vespo",
        "Write loss_type: vespo too, or leave them out.",
    ),
    _without_effect(
        "delta",
        "trl.delta",
        "trl.loss_type does not clip the ratio on two sides",
        lambda given: given["trl.loss_type"] in _CLIPPED,
        f"Take one of {', '.join(_CLIPPED)}, or leave it out.",
    ),
    _without_effect(
        "wandb_names",
        "logging.entity logging.tags logging.group",
        "logging.report_to does not name wandb",
        _reports_to_wandb,
        "Write report_to: [wandb] too, or leave them out.",
    ),
)
"""What a run would not read."""


def _beside_the_file(variable: str, path: str, differs: Callable[[Any, str], bool]) -> Rule:
    """A variable of the environment that wins over what the file writes."""
    return Rule(
        f"environment_{variable.lower()}",
        (path,),
        "warn",
        "start",
        lambda given: (
            _reports_to_wandb(given)
            and given.wrote(path)
            and variable in given.environment
            and differs(given.written(path), given.environment[variable])
        ),
        lambda given: (
            f"{path} = {given.written(path)!r}, but the environment says {variable}={given.environment[variable]}, "
            "which W&B goes by.",
            f"Unset {variable}, or leave {path} out.",
        ),
        f"{variable} in the environment says something else",
    )


START_RULES = (
    Rule(
        "environment_wandb_name",
        ("name",),
        "warn",
        "start",
        lambda given: _reports_to_wandb(given) and bool(given.environment.get("WANDB_NAME")),
        lambda given: (
            f"WANDB_NAME={given.environment['WANDB_NAME']} has no effect: the run's name and seed are its name at W&B.",
            "Write `name:` in the file, or name=… on the command line.",
        ),
        about="WANDB_NAME in the environment, which has no effect",
    ),
    Rule(
        "environment_wandb_disabled",
        ("logging.report_to",),
        "warn",
        "start",
        lambda given: _reports_to_wandb(given) and bool(given.environment.get("WANDB_DISABLED")),
        lambda given: (
            f"WANDB_DISABLED={given.environment['WANDB_DISABLED']} has no effect: nothing reads it any more, and the "
            "run is recorded.",
            "Write `logging: {wandb_mode: disabled}`, or take wandb out of report_to.",
        ),
        about="WANDB_DISABLED in the environment, which has no effect",
    ),
    *(
        _beside_the_file(f"WANDB_{name}", f"logging.{key}", lambda written, found: written not in (None, found))
        for name, key in (("MODE", "wandb_mode"), ("PROJECT", "project"), ("ENTITY", "entity"), ("RUN_GROUP", "group"))
    ),
    _beside_the_file(
        "WANDB_TAGS", "logging.tags", lambda written, found: bool(written) and not {*written} <= {*found.split(",")}
    ),
)
"""What the environment says against the file."""

HEAVIEST = 1e3

PART_RULES = (
    Rule(
        "heavy_token_weights",
        ("algorithm.token_weight",),
        "warn",
        "parts",
        lambda given: given.heaviest_token_weight > HEAVIEST,
        lambda given: (
            f"algorithm.token_weight gives a token a weight of {given.heaviest_token_weight:.3g} on a tiny example, "
            "and 1 leaves a token as it is: a few tokens would be all that is trained.",
            "Divide the weights by their mean, or bound them.",
        ),
        about="Token weights under which a few tokens are all that is trained",
    ),
)
"""What the built parts do."""


def rules_broken(rules: tuple[Rule, ...], given: Given) -> Iterator[tuple[Rule, str, str]]:
    """Each rule of which a setting is written and whose condition holds, with what is wrong and what to write."""
    for rule in rules:
        if any(map(given.wrote, rule.settings)) and rule.condition(given):
            yield rule, *rule.message(given)
