"""What explains that vLLM and the trainer score the same tokens differently: each explanation tried on the same probe.

Nothing here changes the trainer: weights, adapters and temperature are put back as they were.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

BOUNDS = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""The largest difference of a token's log-probability that rounding explains, by what the trainer computes in.

On a CPU, with a policy of 0.8 million parameters, float32 differed by up to 7e-6 and bfloat16 by 0.11
(configs/README.md); what larger models reach is not known, hence the room above it.
"""
GROUPS = ("embeddings", "attention", "mlp", "norms", "lm_head", "all weights")
_EXPLAINS = 0.2
"""An explanation leaves less than this share of the difference, or no more than rounding."""


@dataclass(frozen=True)
class Probe:
    """Tokens that the engine has just written, and what it says of them.

    Attributes:
        input_ids: prompts of random tokens and what the engine generated after them (B, P + T).
        logps: the engine's (B, T); NaN where it gave none.
    """

    input_ids: Tensor
    logps: Tensor

    def largest_difference(self, logps: Tensor) -> float:
        """``max |log π_engine − log π|`` over the tokens that the engine scored; ∞ where it scored none."""
        differences = (self.logps - logps.to(self.logps)).abs()
        scored = differences[~self.logps.isnan()]
        largest = float(scored.max()) if scored.numel() else inf
        return largest if largest == largest else inf  # the trainer's own may be NaN


@dataclass(frozen=True)
class Policy:
    """The policy that is trained, as it is compared with the engine's.

    Attributes:
        score: its ``log π`` of the tokens that the engine wrote, of ``input_ids`` (B, P + T) → (B, T).
        temperature: at which rollouts are sampled.
        dtype: what its forward passes round to.
        bound: largest difference of a log-probability that is allowed.
        is_sharded: a forward pass needs all ranks.
        step: optimizer steps made.
    """

    model: Any
    accelerator: Any
    engine: Any
    score: Callable[[Tensor], Tensor]
    temperature: float
    dtype: torch.dtype
    bound: float
    is_sharded: bool
    step: int


def compute_dtype(args: Any, model: Any) -> torch.dtype:
    """What the trainer's forward passes round to; TF32 keeps as many bits as float16."""
    if args.bf16:
        return torch.bfloat16
    if args.fp16 or (args.tf32 and model.dtype == torch.float32):
        return torch.float16
    return model.dtype if model.dtype in BOUNDS else torch.float32


def parameter_group(name: str) -> str:
    """The group of `GROUPS` that a parameter belongs to, by its name in a decoder; ``other`` where none fits."""
    words = {
        "adapters": ("lora_",),
        "norms": ("norm", "ln_"),
        "embeddings": ("embed", "wte", "wpe"),
        "lm_head": ("lm_head", "output_projection"),
        "attention": ("attn", "attention"),
        "mlp": ("mlp", "feed_forward", "experts", "ffn"),
    }
    return next((group for group, parts in words.items() if any(part in name for part in parts)), "other")


def diagnosis(policy: Policy, probe: Probe, difference: float, rank: int) -> str:
    """What is wrong, what explains it and what to do; the difference is the largest of this rank, the worst one."""
    bound, dtype = policy.bound, _named(policy.dtype)
    measured = (
        f"After the weight sync at step {policy.step} vLLM's log-probabilities differ from the trainer's "
        f"by up to {difference:.2g} over {probe.logps.numel()} tokens (rank {rank}), where {bound:g} is allowed: the "
        f"trainer computes in {dtype}. The next rollouts would be samples of another policy than the one that is "
        "trained, so the run stops before it trains on them."
    )
    tried = dict(_explanations(policy, probe))
    listed = ", ".join(f"{each} {value:.2g}" for each, value in tried.items()) or "nothing, the weights are sharded"
    name, left = min(tried.items(), key=lambda pair: pair[1], default=("", inf))
    if left <= max(bound, _EXPLAINS * difference):
        return f"{measured}\n\n{_cause(policy, name, left)}\n\nDifferences left by what was tried: {listed}."
    engine = engine_dtype(policy)
    if engine is not None and difference <= BOUNDS.get(engine, 0.0) and engine != policy.dtype:
        return (
            f"{measured}\n\nDtype: vLLM computes in {_named(engine)}, which explains up to {BOUNDS[engine]:g}. Let "
            f"both compute alike: model.dtype and trl.bf16 for the trainer, vllm serve --dtype {dtype} for a server. "
            "(A colocated engine takes the dtype of the model's config.json, and bfloat16 where that says float32.) Or "
            f"accept it with vllm.agreement_bound: {BOUNDS[engine]:g}; vllm_importance_sampling_correction then makes "
            "up for it."
        )
    return (
        f"{measured}\n\nNothing that was tried explains it ({listed}). If the difference grows from sync to sync, "
        "updates have ceased to arrive: start a new vLLM, and resume. If it is there from the first sync on, the two "
        "load another model, tokenizer or quantisation."
    )


def _explanations(policy: Policy, probe: Probe) -> Iterator[tuple[str, float]]:
    """Each explanation with the difference it leaves."""
    if policy.is_sharded:
        return  # a forward pass needs all ranks
    ids = probe.input_ids
    yield _best_temperature(policy, probe)
    model: Any = policy.accelerator.unwrap_model(policy.model)
    if hasattr(model, "disable_adapter"):
        with model.disable_adapter():
            yield "no adapters", probe.largest_difference(policy.score(ids))
    else:
        for group, score in _with_starting_weights(policy, model):
            yield group, probe.largest_difference(score(ids))


@torch.no_grad()
def _best_temperature(policy: Policy, probe: Probe) -> tuple[str, float]:
    """Of 1 and those between a quarter and four times the trainer's, in steps of 1 %."""
    width, own = probe.logps.shape[1], policy.temperature
    with policy.accelerator.autocast():
        answer = policy.model(input_ids=probe.input_ids, attention_mask=torch.ones_like(probe.input_ids))
    logits, tokens = answer.logits[:, -width - 1 : -1].float(), probe.input_ids[:, -width:, None]
    left = {}
    for temperature in (1.0, *(own * 1.01**power for power in range(-140, 141) if power)):
        logps = (logits / temperature).log_softmax(-1).gather(2, tokens).squeeze(2)
        left[temperature] = probe.largest_difference(logps) if temperature != own else inf
    best = min(left, key=lambda temperature: left[temperature])
    return f"temperature {best:.2g}", left[best]


def _with_starting_weights(policy: Policy, model: nn.Module) -> Iterator[tuple[str, Callable[..., Tensor]]]:
    """Scores with one group of the weights put back to those the run started from, which the engine loaded too."""
    loaded: Any = type(model)
    try:
        start: Any = loaded.from_pretrained(model.name_or_path, dtype=model.dtype)
    except OSError:  # gone since the start; the ranks that wait for the diagnosis get it without this part
        return
    before = start.state_dict()  # on the CPU: a device that holds model, optimizer and vLLM has no room for all of it
    now = dict(model.named_parameters())  # a tied head is not in here
    for group in GROUPS:
        chosen = {name: before[name] for name in now if group in ("all weights", parameter_group(name))}
        head: Any = model.get_output_embeddings()  # type: ignore[operator]
        tied = head.weight is model.get_input_embeddings().weight  # type: ignore[operator]
        if group == "lm_head" and tied:
            with _head(head, start.get_output_embeddings().weight.to(policy.accelerator.device)):
                yield "lm_head (tied to the embeddings)", policy.score
        elif chosen:
            keeps_head = group == "embeddings" and tied
            with _head(head, head.weight.detach().clone()) if keeps_head else nullcontext(), _replaced(now, chosen):
                yield group, policy.score


@contextmanager
def _replaced(parameters: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> Iterator[None]:
    """The parameters with other values, in place; their own meanwhile on the CPU."""
    kept = {name: parameters[name].data.to("cpu", copy=True) for name in values}
    try:
        for name, value in values.items():
            parameters[name].data.copy_(value)
        yield
    finally:
        for name, value in kept.items():
            parameters[name].data.copy_(value)


@contextmanager
def _head(head: nn.Module, weight: Tensor) -> Iterator[None]:
    """The model's answers through ``weight`` in place of its head's own."""
    own = head.weight
    try:
        head.weight = nn.Parameter(weight, requires_grad=False)
        yield
    finally:
        head.weight = own


def _cause(policy: Policy, name: str, left: float) -> str:
    if name.startswith("temperature"):
        return (
            f"Temperature: at {name.removeprefix('temperature ')} in place of {policy.temperature:g} the difference "
            f"is {left:.2g}. Start the server with --logprobs-mode processed_logprobs (vLLM's default reports "
            "log-probabilities before the temperature), and leave temperature out of trl.generation_kwargs."
        )
    if name == "no adapters":
        return (
            f"Adapters: without them the trainer's policy differs by {left:.2g}. vLLM holds the base weights alone: "
            "the adapters were not merged into what was sent. Adapters that do not merge cannot be trained with vLLM."
        )
    if name == "all weights":
        return (
            f"All weights: with those the run started from the difference is {left:.2g}. No update has reached vLLM. "
            "Look for a refused weight transfer in its log, and whether trl.vllm_server_base_url names another server."
        )
    if name.startswith("lm_head"):
        return (
            f"The {name}: with the weights it started from the difference is {left:.2g}. Everything else arrived; vLLM "
            "keeps a copy of the head that a sync does not reach. Train a copy of the model whose config says "
            "tie_word_embeddings: false (load it, give the head a weight of its own, save_pretrained), or take another "
            "version of vLLM."
        )
    return (
        f"Parameters of the group {name}: with those the run started from the difference is {left:.2g}. vLLM loads "
        "everything else and keeps these: its model class may pack or rename them. Take another version of vLLM, or "
        "vllm_model_impl: transformers."
    )


def engine_dtype(policy: Policy) -> torch.dtype | None:
    """What vLLM says it computes in; ``None`` on a rank that does not talk to the server, or a name torch lacks."""
    engine = policy.engine
    if engine.mode == "colocate":
        dtype: Any = engine.llm.llm_engine.model_config.dtype
    elif policy.accelerator.is_main_process:
        dtype = engine.vllm_client.get_server_info()["model_config"]["dtype"]
    else:
        return None
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    return found if isinstance(found, torch.dtype) else None


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
