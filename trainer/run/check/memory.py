"""The memory that one device needs, estimated from shapes alone: every term can be computed by hand.

Notation: T trained parameters, layers of width h, n processes. Bytes throughout. The terms follow the code that runs:

- weights, gradients, Adam's two moments: as many bytes as the stored dtype has; gradients and moments of T only. Under
  DeepSpeed with bf16 it is (2 + 2 + 12) bytes a parameter, of which stage 1 divides the 12 by n, stage 2 the
  gradients too, stage 3 the weights too (arXiv 1910.02054, §3, §5). Autocast holds weights once more in 16 bits.
- activations: `activations_of_a_token`; with gradient checkpointing, inputs of layers and one layer (arXiv 1604.06174).
- logits: TRL 1.16 projects in tiles of 4,096 tokens × 32,768 words and never holds all of them; its backward pass holds
  the gradient of the output layer and of the hidden states in float32. Without Triton it also holds seven tiles in
  float32 and a mask (`_backward_tile` there).
- generation without vLLM: the keys and values of all sequences that one process draws together.
- FSDP2: accelerate reduces gradients once an optimizer step; until then each device accumulates all of them.
- on a CPU: the libraries; and freed activations, as many again, which glibc's heap keeps between what stays: gradients,
  an adapter's moments. With all weights trained no step has both these and the tiles (configs/accelerate/README.md).
- not counted: a GPU's fragmentation, communication buffers, other programs there; dropout. Every optimizer is Adam's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

GIB = 1024**3
CONTEXT = GIB
"""What CUDA, its libraries and NCCL take before the first tensor, roughly."""
LIBRARIES = 600 * 1024**2
"""What Python with torch, transformers and TRL takes, measured."""
TILE_TOKENS, TILE_WORDS = 4096, 32768
"""TRL's tiles of the output layer (`trl.kernels.chunked_logprob`, `trl.trainer.utils`)."""

Sharding = Literal["ddp", "zero1", "zero2", "zero3", "fsdp2"]
"""How a model is divided among processes; ``ddp``, also for one process, divides nothing."""
Phase = Literal["always", "training", "generation"]


@dataclass(frozen=True)
class ModelSize:
    """A decoder's shape; ``trained``: parameters, or an adapter's; ``head_norms``: of queries and keys, as in Qwen3."""

    parameters: int
    trained: int
    layers: int
    hidden: int
    intermediate: int
    vocabulary: int
    heads: int
    key_value_heads: int
    head_dim: int
    head_norms: bool = False


@dataclass(frozen=True)
class Training:
    """The settings of a run that determine its memory.

    Attributes:
        rows: sequences in one micro-batch on one process.
        tokens: of one sequence, prompt + completion.
        rows_generated: sequences that one process generates together; 0 where vLLM does.
        weight_bytes: of a stored weight: 4 in float32, 2 in bfloat16, 0.5 in 4 bits.
        compute_bytes: of an activation: 2 under bf16 or fp16, else 4.
        optimizer_bytes: of a value in Adam's two moments; ``None`` = as a trained weight.
        reference: a second model is held for the KL term.
        checkpointing: gradient checkpointing.
        vllm_bytes: reserved by vLLM on this device; 0 without it, or where it sleeps while the policy trains.
        on_gpu: a CUDA context is held, and Triton folds tiles of logits in place.
        microbatches: of one process between two reductions of its gradients.
    """

    rows: int
    tokens: int
    rows_generated: int = 0
    weight_bytes: float = 4
    compute_bytes: int = 2
    optimizer_bytes: float | None = None
    reference: bool = False
    checkpointing: bool = True
    vllm_bytes: int = 0
    on_gpu: bool = True
    microbatches: int = 1


@dataclass(frozen=True)
class Term:
    """One term: its name, bytes, and when they are held."""

    name: str
    bytes: int
    phase: Phase


@dataclass(frozen=True)
class MemoryEstimate:
    """All terms of one device's memory. ``peak`` = what is always held + the greater of the two phases."""

    terms: tuple[Term, ...]

    @property
    def peak(self) -> int:
        return self.of("always") + max(self.of("training"), self.of("generation"))

    def of(self, phase: Phase) -> int:
        """The bytes of one phase's terms."""
        return sum(term.bytes for term in self.terms if term.phase == phase)


def memory_per_device(
    model: ModelSize, training: Training, sharding: Sharding = "ddp", processes: int = 1
) -> MemoryEstimate:
    """An estimate of what one device must hold; the formulas are at the top of this file."""
    return MemoryEstimate(tuple(_terms(model, training, sharding, processes)))


def _terms(model: ModelSize, training: Training, sharding: Sharding, processes: int) -> Iterator[Term]:
    computed, tokens = training.compute_bytes, training.rows * training.tokens
    is_deepspeed = sharding.startswith("zero") and computed == 2
    # the others hold a copy in 16 bits
    autocast = sharding == "ddp" and training.weight_bytes == 4 and computed == 2
    stored = min(training.weight_bytes, 2) if is_deepspeed else training.weight_bytes
    of_weights = processes if sharding in ("zero3", "fsdp2") else 1
    of_gradients = processes if sharding in ("zero2", "zero3", "fsdp2") else 1
    of_states = 1 if sharding == "ddp" else processes
    whole, embeddings = model.trained == model.parameters, model.vocabulary * model.hidden
    gradients = round(model.trained * max(stored, 2))  # an adapter on 4-bit weights is kept in 16 bits
    yield Term("weights", round(model.parameters * stored / of_weights), "always")
    if autocast:
        yield Term("weights in 16 bits (autocast)", model.parameters * 2, "training")
    yield Term("gradients", round(gradients / of_gradients), "always")
    if sharding == "ddp" and processes > 1:
        yield Term("gradient buckets (DDP)", gradients, "always")
    if sharding == "fsdp2" and training.microbatches > 1:
        yield Term("gradients between micro-batches", model.trained * computed, "training")
    if is_deepspeed:
        yield Term("float32 weights (DeepSpeed)", round(model.trained * 4 / of_states), "always")
    of_value = training.optimizer_bytes or (4 if is_deepspeed else max(stored, 2))
    yield Term("optimizer", round(model.trained * 2 * of_value / of_states), "always")
    if training.reference:
        yield Term("reference model", round(model.parameters * stored / of_weights), "always")
    if sharding in ("zero3", "fsdp2"):
        layer = (model.parameters - embeddings) // model.layers
        yield Term("gathered weights", (2 * layer + embeddings) * computed, "training")
        if training.rows_generated and sharding == "zero3":
            yield Term("gathered weights", model.parameters * computed, "generation")
    layer = activations_of_a_token(model, computed, autocast=autocast)
    residual = (4 if autocast else computed) * model.hidden
    kept = model.layers * residual + layer if training.checkpointing else model.layers * layer
    yield Term("activations", tokens * kept, "training")
    beside = 0 if training.on_gpu else 7 * 4 + 1
    tile = min(tokens, TILE_TOKENS) * min(model.vocabulary, TILE_WORDS) * (computed + beside)
    head = 4 * embeddings if whole else 0
    yield Term("logits", tile + head + tokens * model.hidden * 4, "training")
    if training.rows_generated:
        of_a_token = 2 * model.layers * model.key_value_heads * model.head_dim * computed
        yield Term("keys and values", training.rows_generated * training.tokens * of_a_token, "generation")
    if training.vllm_bytes:
        yield Term("vLLM", training.vllm_bytes, "always")
    if training.on_gpu:
        yield Term("CUDA context", CONTEXT, "always")
    else:
        yield Term("libraries", LIBRARIES, "always")
        yield Term("freed activations", max(0, tokens * kept - whole * tile), "training")


def activations_of_a_token(model: ModelSize, compute_bytes: int, *, autocast: bool) -> int:
    """Bytes that one layer keeps of one token for its backward pass, attention computed without an s × s matrix.

    ``2·h·(4 + r) + (k·h + 2·q + 2·v + 4·i)·c + 4·(heads + 2)``, with c = ``compute_bytes`` and r = 4 under autocast,
    else c: two RMS norms keep their input in float32 and, where their weights are trained, its normalized form in r
    bytes; that is kept again for q, k, v and for gate and up (k = 2), under autocast for each of the five; q and the
    attention's output (q = heads · head_dim), keys and values (v = key_value_heads · head_dim); gate, up, silu(gate)
    and their product (i = intermediate); in float32 the attention's log-sum-exp and the norms' roots. Norms of q and k
    add ``(q + v)·(4 + c) + 4·(heads + key_value_heads)``. In 16 bits each adapter reads a copy: k = 5, and 3·q.
    """
    residual, casts = (4, 5) if autocast else (compute_bytes, 2)
    of_heads = compute_bytes
    queries, values = model.heads * model.head_dim, model.key_value_heads * model.head_dim
    kept = 2 * queries + 2 * values + 4 * model.intermediate
    if model.trained < model.parameters:
        residual = of_heads = 0
        if compute_bytes == 2:
            casts, kept = 5, kept + queries
    kept += casts * model.hidden
    norms = 2 * model.hidden * (4 + residual) + 4 * (model.heads + 2)
    if model.head_norms:
        norms += (queries + values) * (4 + of_heads) + 4 * (model.heads + model.key_value_heads)
    return norms + kept * compute_bytes
