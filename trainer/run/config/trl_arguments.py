"""What a file may write under ``trl:`` and ``model.lora:``, as pydantic models made from TRL's and peft's own fields.

The fields and their types are read from ``GRPOConfig`` and ``LoraConfig``, so they are not declared a second time. What
is added here is what their types leave open: the ranges, the words that a plain ``str`` accepts in silence, and the
arguments that belong to another section of the file.
"""

import dataclasses
import enum
import math
import types
import typing
from collections.abc import Collection, Iterator
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic_core import InitErrorDetails

from trainer.run.config.problems import refusal, refuse
from trainer.run.config.yaml_document import scalar

ELSEWHERE = {
    "output_dir": "Write `output_dir:` at the top level.",
    "run_name": "Write `name:` at the top level.",
    "report_to": "Write `logging: {report_to: [wandb]}`.",
    "project": "Write `logging: {project: …}`.",
    "log_completions": "Write `logging: {samples_every_steps: …, num_samples: …}`.",
    "num_completions_to_print": "Write `logging: {num_samples: …}`.",
    "log_completions_hub_repo": "Leave it out: completions are logged by `logging:`.",
    "reward_weights": "Write a `weight:` beside each verifier under `rewards:`.",
    "scale_rewards": "Choose an estimator: `algorithm: {advantage: grpo}` or `dr_grpo`.",
    "multi_objective_aggregation": "Choose an estimator: `algorithm: {advantage: …}`.",
    "eval_strategy": "Write `evaluation: {every_steps: …}`.",
    "eval_steps": "Write `evaluation: {every_steps: …}`.",
    "eval_on_start": "Write `evaluation: {before: true}`.",
    "do_eval": "Write `evaluation: {before: …, after: …, every_steps: …}`.",
    "eval_delay": "Write `evaluation: {every_steps: …}`.",
    "metric_for_best_model": "Write `evaluation: {keep_best: eval/test/avg@1}`.",
    "greater_is_better": "Leave it out: `evaluation: {keep_best: …}` keeps the highest.",
    "per_device_eval_batch_size": "Write `evaluation: {batch_size: …}`.",
    "num_generations_eval": "Write `evaluation:`.",
    "model_init_kwargs": "Write `model: {dtype: …, revision: …, attn_implementation: …}`.",
    "trust_remote_code": "Write `model: {trust_remote_code: true}`.",
    "resume_from_checkpoint": "Name the checkpoint on the training script's command line.",
    "remove_unused_columns": "Leave it out: verifiers need the reference column, so it is always false.",
    "hub_token": "Set the environment variable HF_TOKEN: the configuration is saved and logged, a token must not be.",
    "local_rank": "Leave it out: the launcher sets it.",
    "parallelism_config": "Write it in the accelerate configuration of the launcher.",
}

CHOICES = {
    "loss_type": ("grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "vllm_mode": ("server", "colocate"),
    "vllm_model_impl": ("vllm", "transformers"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}

REASONS = {
    "learning_rate": "At 0 nothing is learned, and below it the reward is made smaller.",
    "temperature": "At 0 all completions of a group are the same, and every advantage is 0.",
    "num_generations": "An advantage compares the completions of one prompt, which takes two.",
    "epsilon": "At 0 the clip stops every token whose probability has moved.",
}


def _nonzero(steps: int) -> int:
    if steps == 0:
        refuse([refusal(steps, "0 steps would silently mean `num_train_epochs`.", "Write a positive number, or -1.")])
    return steps


_RANGES: tuple[tuple[Any, str], ...] = (
    (
        Field(gt=0),
        "learning_rate num_train_epochs adam_epsilon logging_steps save_steps temperature repetition_penalty epsilon "
        "epsilon_high delta sapo_temperature_neg sapo_temperature_pos vllm_server_timeout "
        "vllm_importance_sampling_clip_max",
    ),
    (
        Field(ge=0),
        "warmup_steps weight_decay max_grad_norm top_k beta seed data_seed vllm_importance_sampling_clip_min "
        "off_policy_mask_threshold entropy_coef dataloader_num_workers",
    ),
    (
        Field(ge=1),
        "per_device_train_batch_size gradient_accumulation_steps max_completion_length generation_batch_size "
        "steps_per_generation num_iterations save_total_limit vllm_tensor_parallel_size vllm_max_model_length "
        "ref_model_sync_steps ddp_timeout vllm_server_port vllm_group_port r lora_alpha",
    ),
    (Field(ge=0, le=1), "min_p ref_model_mixup_alpha lora_dropout"),
    (Field(gt=0, le=1), "top_p top_entropy_quantile vllm_gpu_memory_utilization"),
    (Field(ge=0, lt=1), "adam_beta1 adam_beta2"),
    (Field(ge=2), "num_generations"),
    (Field(ge=-1), "max_steps"),
)
RANGE_OF = {name: bounds for bounds, names in _RANGES for name in names.split()}
_TEXT_WITH_NUMBERS = ("chat_template_kwargs",)
_PLAIN = (int, float, str, bool, dict, types.NoneType, Any)


@cache
def grpo_arguments() -> type[BaseModel]:
    """The arguments of ``GRPOConfig`` that may stand under ``trl:``. Imports trl, which takes seconds."""
    from trl import GRPOConfig

    return _arguments_of(GRPOConfig, without=ELSEWHERE)


@cache
def lora_arguments() -> type[BaseModel]:
    """The fields of ``peft.LoraConfig``, which may stand under ``model.lora:``. Imports peft, which takes seconds."""
    from peft import LoraConfig

    return _arguments_of(LoraConfig, without=())


@cache
def revision_options() -> type[BaseModel]:
    """The options that may stand under ``algorithm.revision:``. Imports torch, which takes seconds."""
    from trainer.algorithms.revisions import RevisionOptions

    return RevisionOptions


def checked_trl(arguments: dict[str, Any]) -> dict[str, Any]:
    """``arguments`` as they are, or pydantic's error for all that ``GRPOConfig`` could not mean."""
    if arguments:
        grpo_arguments().model_validate(arguments)
    return arguments


def checked_lora(fields: dict[str, Any]) -> dict[str, Any]:
    """``fields`` as they are, or pydantic's error for all that ``LoraConfig`` could not mean."""
    lora_arguments().model_validate(fields)
    return fields


def checked_revision(options: dict[str, Any]) -> dict[str, Any]:
    """``options`` as they are, or pydantic's error for all that `RevisionOptions` could not mean."""
    revision_options().model_validate(options)
    return options


def finite(value: Any) -> Any:
    """``value`` as it is, or pydantic's error for every infinite number or NaN at any depth of it."""
    refuse(_nested_refusals(value, (), numbers_as_text=True))
    return value


def _finite_and_numeric(value: Any) -> Any:
    refuse(_nested_refusals(value, (), numbers_as_text=False))
    return value


def _nested_refusals(
    value: Any, location: tuple[str | int, ...], *, numbers_as_text: bool
) -> Iterator[InitErrorDetails]:
    if isinstance(value, dict):
        for key, item in value.items():
            if not numbers_as_text and isinstance(item, str) and _is_number(scalar(item)):
                what = f"is the text {item!r}, which would stay text and never become a number."
                yield refusal(item, what, f"Write {key}: {item}, without quotes.", (*location, key))
            yield from _nested_refusals(item, (*location, key), numbers_as_text=numbers_as_text)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested_refusals(item, (*location, index), numbers_as_text=numbers_as_text)
    elif isinstance(value, float) and not math.isfinite(value):
        yield refusal(value, f"is {value}, and a finite number is needed.", "Write a finite number.", location)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _arguments_of(declared: Any, without: Collection[str]) -> type[BaseModel]:
    hints = typing.get_type_hints(declared)
    fields: dict[str, Any] = {
        field.name: (_accepted(field.name, hints[field.name], field.metadata.get("choices")), _default(field))
        for field in dataclasses.fields(declared)
        if field.init and field.name not in without
    }
    strict = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())
    return create_model(declared.__name__, __config__=strict, **fields)


def _default(field: "dataclasses.Field[Any]") -> Any:
    return None if field.default is dataclasses.MISSING else field.default


def _accepted(name: str, hint: Any, choices: Collection[str] | None) -> Any:
    """The type that a value must have: the declared one, with its words and its range where they are known."""
    members = typing.get_args(hint) or (hint,)
    enums: list[Any] = [kind for kind in members if isinstance(kind, enum.EnumMeta)]
    words = [word.value for kind in enums for word in kind] or [*(CHOICES.get(name) or choices or ())]
    if name == "init_lora_weights":
        hint = bool | str
    elif name == "num_generations":
        hint = int
    elif words:
        hint = Literal[*words, None] if types.NoneType in members else Literal[*words]
    elif not _is_plain(hint):
        hint = Any
    if name in RANGE_OF:
        hint = Annotated[hint, RANGE_OF[name]]
    if name == "max_steps":
        hint = Annotated[hint, AfterValidator(_nonzero)]
    return Annotated[hint, AfterValidator(finite if name in _TEXT_WITH_NUMBERS else _finite_and_numeric)]


def _is_plain(hint: Any) -> bool:
    if typing.get_origin(hint) in (list, dict, typing.Union, types.UnionType):
        return all(_is_plain(member) for member in typing.get_args(hint))
    return hint in _PLAIN or typing.get_origin(hint) is Literal


def grpo_default(name: str) -> Any:
    """GRPOConfig's default for one of its arguments. Imports trl, which takes seconds."""
    return grpo_arguments().model_fields[name].default
