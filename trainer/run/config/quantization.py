"""QLoRA: a base model held in 4 bits beneath a trained adapter."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from trainer.run.config.problems import ConfigError, Problem
from trainer.run.config.section import Section

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig


class QuantizationSection(Section):
    """``transformers.BitsAndBytesConfig`` for 4 bits, by its own names.

    The defaults are QLoRA's (arXiv 2305.14314, section 3): NormalFloat, quantization constants quantized once more,
    products in bfloat16.
    """

    load_in_4bit: Literal[True]
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = "nf4"
    bnb_4bit_use_double_quant: bool = True
    bnb_4bit_compute_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"


def bits_and_bytes(section: QuantizationSection | None) -> "BitsAndBytesConfig | None":
    """What ``from_pretrained`` takes; ``None`` where nothing is quantized.

    Raises:
        ConfigError: bitsandbytes is not installed.
    """
    if section is None:
        return None
    if find_spec("bitsandbytes") is None:
        what = "a model in 4 bits takes the package bitsandbytes, which is not installed."
        instead = 'Install it (pip install -e ".[qlora]" -c constraints.txt), or leave `quantization` out.'
        raise ConfigError([Problem("model.quantization", what, instead)])
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(**section.model_dump())
