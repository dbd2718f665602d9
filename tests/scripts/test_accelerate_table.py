"""The table of configs/accelerate/README.md is what the memory estimate says."""

import pytest

from evenkeel.trainer.run.check.memory import GIB, ModelSize, Sharding, Training, memory_per_device
from tests.paths import ROOT

README = ROOT / "configs" / "accelerate" / "README.md"
SHAPES = {  # layers, hidden, intermediate, vocabulary, heads, key-value heads, tied: Qwen2.5's config.json
    "1.5B": (28, 1536, 8960, 151936, 12, 2, True),
    "3B": (36, 2048, 11008, 151936, 16, 2, True),
    "7B": (28, 3584, 18944, 152064, 28, 4, False),
    "14B": (48, 5120, 13824, 152064, 40, 8, False),
    "32B": (64, 5120, 27648, 152064, 40, 8, False),
}
PUBLISHED = {"1.5B": 1_543_714_304, "3B": 3_085_938_688, "7B": 7_615_616_512, "14B": 14_770_033_664}
GPUS = (1, 2, 4, 8, 16)
ROOM = 80 * 0.7
"""Of 80 GB, vLLM takes 30 %."""
FULL = Training(rows=4, tokens=4096)
CHOICES: tuple[tuple[str, Sharding], ...] = (("ddp", "ddp"), ("zero2", "zero2"), ("zero3", "zero3"))


def shape(name: str, rank: int = 0) -> ModelSize:
    """With ``rank`` the adapter on all linear layers is what is trained."""
    layers, hidden, intermediate, vocabulary, heads, groups, tied = SHAPES[name]
    keys = groups * (hidden // heads)
    attention = 2 * hidden * hidden + hidden + 2 * (hidden * keys + keys)  # biases on q, k, v
    layer = attention + 3 * hidden * intermediate + 2 * hidden
    whole = vocabulary * hidden * (1 if tied else 2) + layers * layer + hidden
    adapter = layers * rank * (4 * hidden + 2 * (hidden + keys) + 3 * (hidden + intermediate))
    return ModelSize(
        whole + adapter, adapter or whole, layers, hidden, intermediate, vocabulary, heads, groups, hidden // heads
    )


def gigabytes(model: ModelSize, training: Training, sharding: Sharding, gpus: int) -> float:
    return memory_per_device(model, training, sharding, gpus).peak / GIB


def adapted(name: str, weight_bytes: float) -> float:
    training = Training(rows=4, tokens=4096, weight_bytes=weight_bytes)
    return gigabytes(shape(name, rank=16), training, "ddp", 1)


def choice(name: str, gpus: int) -> str:
    """The least divided way that fits; LoRA where none does."""
    for file, sharding in CHOICES:
        needed = gigabytes(shape(name), FULL, sharding, gpus)
        if needed <= ROOM and (gpus > 1 or sharding == "ddp"):
            file = "one_gpu" if gpus == 1 else "multi_node" if gpus > 8 and file == "zero3" else file
            return f"`{file}` {needed:.0f}"
    for label, weight_bytes in (("LoRA", 2), ("QLoRA", 0.5)):
        if (needed := adapted(name, weight_bytes)) <= ROOM:
            return f"{label} {needed:.0f}"
    return "none"


def row(name: str) -> str:
    cells = " | ".join(choice(name, gpus) for gpus in GPUS)
    return f"| {name} | {cells} | {adapted(name, 2):.0f} | {adapted(name, 0.5):.0f} |"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_have_as_many_parameters_as_is_published(name: str):
    assert shape(name).parameters == PUBLISHED[name]


@pytest.mark.parametrize("name", SHAPES)
def test_the_readme_says_what_the_estimate_says(name: str):
    assert row(name) in README.read_text(), f"write {row(name)}"


def test_the_readme_names_every_file():
    text = README.read_text()
    assert [file.name for file in README.parent.glob("*.yaml") if f"`{file.stem}`" not in text] == []
