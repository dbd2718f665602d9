"""What may be written under ``trl:``, ``model.lora:``, ``algorithm.revision:`` and ``algorithm.teacher:``.

Fields and types are read from ``GRPOConfig`` and ``LoraConfig``. Ranges, and the words of ``str`` fields, are listed
here: with most other values a run fails late, or silently does something else.
"""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    create_model,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, core_schema

from evenkeel.errors import suggest
from evenkeel.trainer.run.config.keys import IN_ANOTHER_SECTION
from evenkeel.trainer.run.config.problems import problem, raise_all
from evenkeel.trainer.run.config.section import finite
from evenkeel.trainer.run.config.yaml_document import scalar

CHOICES = {
    "task_type": ("CAUSAL_LM",),
    "peft_type": ("LORA",),
    "loss_type": ("grpo", "dapo", "dr_grpo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "importance_sampling_level": ("token", "sequence"),
    "vllm_mode": ("server", "colocate"),
    "vllm_model_impl": ("vllm", "transformers"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}

_RANGES: tuple[tuple[Any, str], ...] = (
    (Field(gt=0, lt=1), "learning_rate"),
    (
        Field(gt=0),
        "num_train_epochs adam_epsilon logging_steps save_steps temperature repetition_penalty epsilon "
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
        "max_tool_calling_iterations ref_model_sync_steps ddp_timeout vllm_server_port vllm_group_port r lora_alpha",
    ),
    (Field(ge=0, le=1), "min_p ref_model_mixup_alpha lora_dropout"),
    (Field(gt=0, le=1), "top_p top_entropy_quantile vllm_gpu_memory_utilization"),
    (Field(ge=0, lt=1), "adam_beta1 adam_beta2"),
    (Field(ge=2), "num_generations"),
)
RANGE_OF = {name: bounds for bounds, names in _RANGES for name in names.split()}


@cache
def grpo_arguments() -> type[BaseModel]:
    """The arguments of ``GRPOConfig`` that may stand under ``trl:``. Imports trl, which takes seconds."""
    from trl import GRPOConfig

    return _arguments_of(GRPOConfig, without=IN_ANOTHER_SECTION)


@cache
def lora_arguments() -> type[BaseModel]:
    """The fields of ``peft.LoraConfig``, which may stand under ``model.lora:``. Imports peft, which takes seconds."""
    from peft import LoraConfig

    return _arguments_of(LoraConfig, without=())


def quantization(given: dict[str, Any]) -> Any:
    """``model.quantization`` as transformers' configuration.

    Defaults are QLoRA's (arXiv 2305.14314, section 3): NormalFloat, quantization constants quantized once more,
    products in bfloat16.
    """
    from transformers import BitsAndBytesConfig

    qlora = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": "bfloat16"}
    return BitsAndBytesConfig(**{**qlora, **given})


def check_quantization(given: dict[str, Any]) -> dict[str, Any]:
    """``given`` unchanged; raises pydantic's error for what transformers would refuse or ignore."""
    try:
        known = quantization(given).to_dict()
    except (AttributeError, TypeError, ValueError) as error:
        raise_all([problem("refused-by-transformers", f"transformers refuses it: {error}.", "")])
    for key in given.keys() - known.keys():
        raise_all([problem("unknown-key", "there is no such key.", suggest(key, known), (key,))])
    if not known["load_in_4bit"]:
        raise_all([problem("not-4-bits", "is not in 4 bits.", "Write load_in_4bit: true.")])
    return given


def grpo_default(name: str) -> Any:
    """GRPOConfig's default for one of its arguments. Imports trl, which takes seconds."""
    return grpo_arguments().model_fields[name].default


@dataclasses.dataclass(frozen=True)
class CheckedBy:
    """Validator: a mapping as ``model()`` reads it, or pydantic's error for all that it refuses."""

    model: Callable[[], type[BaseModel]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Import the model only where there is a mapping to check."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The model's."""
        return handler(self.model().__pydantic_core_schema__)

    def _checked(self, given: dict[str, Any]) -> dict[str, Any]:
        if given:  # transformers wants 4.0, not 4; `_steps` are a share or a count
            read = self.model().model_validate(given)
            names = {name for name in given if not name.endswith("_steps")}
            given = given | read.model_dump(include=names)
        return given


def _arguments_of(declared: Any, without: Collection[str]) -> type[BaseModel]:
    hints = typing.get_type_hints(declared)
    fields: dict[str, Any] = {
        field.name: (
            _accepted(field.name, hints[field.name], field.metadata.get("choices")),
            Field(field.default, description=field.metadata["help"])
            if field.default_factory is dataclasses.MISSING
            else Field(default_factory=field.default_factory, description=field.metadata["help"]),
        )
        for field in dataclasses.fields(declared)
        if field.init and field.name not in without
    }
    strict = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())
    return create_model(declared.__name__, __config__=strict, **fields)


def _accepted(name: str, hint: Any, choices: Collection[str] | None) -> Any:
    """The type that a value must have: the declared one, with its words and its range where they are known."""
    members = typing.get_args(hint) or (hint,)
    enums: list[Any] = [kind for kind in members if isinstance(kind, enum.EnumMeta)]
    words = [*(CHOICES.get(name) or [word.value for kind in enums for word in kind] or choices or ())]
    if name == "init_lora_weights":
        hint = bool | str
    elif name.endswith("_kwargs"):  # TRL takes JSON as text too, in which no rule would look
        hint = dict[str, Any] | None
    elif name == "num_generations":
        hint = int
    elif words:
        hint = Literal[*words, None] if types.NoneType in members else Literal[*words]
    elif not _is_plain(hint):
        hint = Any
    elif name == "max_steps":  # 0 would silently be as long as num_train_epochs
        hint = Literal[-1] | Annotated[int, Field(gt=0)]
    checked = finite if name == "chat_template_kwargs" else _finite_and_numeric
    return Annotated[hint, *([RANGE_OF[name]] if name in RANGE_OF else []), AfterValidator(checked)]


def _is_plain(hint: Any) -> bool:
    if typing.get_origin(hint) in (list, dict, typing.Union, types.UnionType):
        return all(_is_plain(member) for member in typing.get_args(hint))
    plain = (int, float, str, bool, dict, types.NoneType, Any)
    return hint in plain or typing.get_origin(hint) is Literal


def _finite_and_numeric(value: Any) -> Any:
    raise_all(_numbers_as_text(value, ()))
    return finite(value)


def _numbers_as_text(value: Any, location: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    for key, item in value.items() if isinstance(value, dict) else ():
        number = scalar(item) if isinstance(item, str) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            yield problem("number-as-text", f"is the text {item!r}.", f"Write {key}: {item}.", (*location, key))
        yield from _numbers_as_text(item, (*location, key))
