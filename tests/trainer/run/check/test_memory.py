"""The memory estimate equals what can be computed by hand, and its activations what autograd really keeps."""

from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from evenkeel.trainer.run.check.memory import (
    CONTEXT,
    GIB,
    LIBRARIES,
    ModelSize,
    Sharding,
    Training,
    activations_of_a_token,
    memory_per_device,
)

SMALL = ModelSize(
    1000, 1000, layers=2, hidden=10, intermediate=30, vocabulary=50, heads=2, key_value_heads=1, head_dim=5
)
PLAIN = Training(rows=3, tokens=7)


def terms(model: ModelSize, training: Training, sharding: Sharding = "ddp", processes: int = 1) -> dict[str, int]:
    return {term.name: term.bytes for term in memory_per_device(model, training, sharding, processes).terms}


def test_one_device_in_float32_under_bf16_autocast():
    # activations of a token: norms 2·10·(4 + 4) + 4·(2 + 2) = 176; kept 5·10 + 2·10 + 2·5 + 4·30 = 200, × 2 = 400; 576
    # checkpointed: 3·7 tokens × (2 layers × 10 × 4 + 576) = 21 × 656 = 13,776
    # logits: tile 21 × 50 × 2 = 2,100; head 50 × 10 × 4 = 2,000; hidden 21 × 10 × 4 = 840; 4,940
    assert terms(SMALL, PLAIN) == {
        "weights": 4000,
        "weights in 16 bits (autocast)": 2000,
        "gradients": 4000,
        "optimizer": 8000,
        "activations": 13776,
        "logits": 4940,
        "CUDA context": CONTEXT,
    }
    assert memory_per_device(SMALL, PLAIN).peak == 4000 + 4000 + 8000 + 2000 + 13776 + 4940 + CONTEXT


def test_the_greater_of_training_and_generation_counts():
    # keys and values: 400 sequences × 7 tokens × 2 · 2 layers · 1 head · 5 · 2 bytes = 2,800 × 40 = 112,000
    estimate = memory_per_device(SMALL, replace(PLAIN, rows_generated=400))
    assert estimate.of("generation") == 112_000
    assert estimate.peak == 16000 + CONTEXT + 112_000
    assert memory_per_device(SMALL, replace(PLAIN, rows_generated=1)).peak == memory_per_device(SMALL, PLAIN).peak


CPU, FOUR_BIT = {"on_gpu": False, "compute_bytes": 4}, {"weight_bytes": 0.5}
LARGE = {"vocabulary": 151_936, "hidden": 2048, "intermediate": 400_000}
MASTER, GATHERED = {"float32 weights (DeepSpeed)": 1000}, {"gathered weights": 2000}


@pytest.mark.parametrize(
    ("sharding", "processes", "model", "training", "expected"),
    [
        # without checkpointing every layer keeps its own
        ("ddp", 1, {}, {"checkpointing": False}, {"activations": 21 * 2 * 576}),
        # DeepSpeed's paper: (2 + 2 + 12) bytes a parameter; the 12 are 4 of the float32 weights and 8 of Adam; n = 4
        ("zero1", 4, {}, {}, {"weights": 2000, "gradients": 2000, "optimizer": 2000, **MASTER}),
        ("zero2", 4, {}, {}, {"weights": 2000, "gradients": 500, "optimizer": 2000, **MASTER}),
        ("zero3", 4, {}, {}, {"weights": 500, "gradients": 500, "optimizer": 2000, **MASTER}),
        # FSDP divides float32 weights and gathers two layers, each (1000 − 500) ÷ 2 = 250, and the embeddings:
        # (2 × 250 + 500) × 2 bytes
        ("fsdp2", 4, {}, {"rows_generated": 1}, {"weights": 1000, "gradients": 1000, "optimizer": 2000, **GATHERED}),
        ("fsdp2", 4, {}, {"microbatches": 2}, {"gradients": 1000, "gradients between micro-batches": 2000}),
        ("ddp", 2, {}, {"reference": True}, {"gradient buckets (DDP)": 4000, "reference model": 4000}),
        # an adapter, 4-bit weights: 1000 × 0.5; 100 trained × 2; Adam 100 × 2 × 2; no gradient of the head: 2,100 + 840
        ("ddp", 1, {"trained": 100}, FOUR_BIT, {"weights": 500, "gradients": 200, "optimizer": 400, "logits": 2940}),
        ("ddp", 1, {}, {"optimizer_bytes": 1, "vllm_bytes": 24 * GIB}, {"optimizer": 2000, "vLLM": 24 * GIB}),
        # without Triton each of 21 × 50 logits takes 4 + 7 × 4 + 1 bytes; 34,650 + head 2,000 + hidden 840; activations
        # checkpointed: norms 2·10·(4 + 4) + 4·(2 + 2) = 176, kept 170 × 4 = 680; 21 × (2 × 10 × 4 + 856) = 19,656
        ("ddp", 1, {}, CPU, {"logits": 37_490, "freed activations": 0, "libraries": LIBRARIES}),
        # 21 × (2 × 2,048 × 4 + 32,784 + 1,604,126 × 4) = 135,779,112, beyond the tiles' 21 × 32,768 × 33
        ("ddp", 1, LARGE, CPU, {"freed activations": 113_070_888}),
        # 8,192 tokens: tile 4,096 × 32,768 × 2; head 151,936 × 2,048 × 4; hidden 8,192 × 2,048 × 4
        ("ddp", 1, LARGE, {"rows": 2, "tokens": 4096}, {"logits": 268_435_456 + 1_244_659_712 + 67_108_864}),
    ],
)
def test_terms_are_the_arithmetic_of_a_setting(sharding, processes, model, training, expected):
    found = terms(replace(SMALL, **model), replace(PLAIN, **training), sharding, processes)
    assert expected.items() <= found.items()
    assert not {*MASTER, "weights in 16 bits (autocast)"} <= found.keys()


@pytest.mark.parametrize("config", [LlamaConfig, Qwen2Config, Qwen3Config])
@pytest.mark.parametrize(("compute_bytes", "autocast"), [(4, False), (2, True), (2, False)])
@pytest.mark.parametrize("rank", [0, 3])
def test_activations_are_what_autograd_keeps(config: type, compute_bytes: int, autocast: bool, rank: int):
    """The bytes that a second layer adds, less autocast's copies of weights and adapters' ``rank`` values."""
    dtype = torch.bfloat16 if compute_bytes == 2 and not autocast else torch.float32
    casts = compute_bytes == 2 and (autocast or rank > 0)
    one, two = (kept_bytes(config, layers, dtype, casts, rank) for layers in (1, 2))
    size = ModelSize(2, 1 if rank else 2, 3, 64, 172, 64, 4, 2, 16, head_norms=config is Qwen3Config)
    matrices = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 172
    copies = 2 * (matrices * autocast + 1156 * rank * casts) + 7 * 256 * rank * compute_bytes  # of seven adapters
    assert (two - one - copies) / 256 == activations_of_a_token(size, compute_bytes, autocast=autocast)


def kept_bytes(config: type, layers: int, dtype: torch.dtype, autocast: bool, rank: int) -> int:
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    settings = config(vocab_size=64, hidden_size=64, intermediate_size=172, num_hidden_layers=layers, **heads)
    model = AutoModelForCausalLM.from_config(settings, attn_implementation="sdpa", dtype=dtype)
    if rank:
        model = get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear")).get_base_model()
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    ids = torch.arange(256).view(2, 128) % 64
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=autocast),
    ):
        model.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
