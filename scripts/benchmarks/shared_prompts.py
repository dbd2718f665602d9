"""What sharing a prompt saves: forward and backward of eight rows of one prompt, apart and in one sequence, in turn.

A random Qwen3 with TRL's fused head; every token of the completions is scored and has a gradient. Both layouts are run
at every size, also where a trainer leaves the rows apart: ``work`` is the ratio that `trainer.step.microbatch_plan`
expects and decides by, ``measured`` that of the seconds.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from trl.trainer.utils import add_fused_lm_head

from evenkeel.trainer.step.microbatch_plan import pays, work_of
from evenkeel.trainer.step.scoring import labelled_positions_only
from evenkeel.trainer.step.shared_prompts import attention_length, packing, with_shared_prompts
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.benchmarks.update import Size, random_policy

GROUP_SIZE = 8
LENGTHS = ((512, 128), (64, 128), (512, 256), (512, 512))
"""Tokens of the prompt and of each completion."""
MODELS = {
    "cpu": Size(256, 4, 16_384, "float32", 1, GROUP_SIZE, GROUP_SIZE, 512, 512, 512),
    "cuda": Size(1024, 28, 151_936, "bfloat16", 1, GROUP_SIZE, GROUP_SIZE, 512, 512, 512),
}
"""On a GPU half a billion parameters."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--device", choices=list(MODELS), default="cpu", help="default cpu")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """A line for each pair of lengths."""
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    model = scored_policy(MODELS[options.device]).to(device).train()
    print(f"{name}, torch {torch.__version__}; groups of {GROUP_SIZE}")
    print(f"{'prompt':>8}{'completion':>12}{'tokens':>9}{'work':>7}   {'measured':<22}a trainer", flush=True)
    results = [compared(model, prompt, completion, options.rounds) for prompt, completion in LENGTHS]
    return {"device": name, "results": results}


def compared(model: Any, prompt: int, completion: int, rounds: int) -> dict[str, Any]:
    """Seconds of both layouts in every round, and how many times less sharing computes and takes."""
    ids = torch.randint(2, model.config.vocab_size, (GROUP_SIZE, prompt + completion), device=model.device)
    ids[:, :prompt] = ids[0, :prompt]
    numbers, prompts, completions = (torch.full((GROUP_SIZE,), each) for each in (0, prompt, completion))
    packed = packing(numbers, prompts, completions, prompt, completion)
    layouts: dict[str, Callable[..., Any]] = {
        "apart": model,
        "shared": with_shared_prompts(model, packed.to(model.device)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in layouts}
    for number in range(rounds + 1):  # the first one warms up
        for name in in_turn(list(layouts), number):
            taken = _seconds(model, layouts[name], ids, completion)
            seconds[name] += [taken] if number else []
    ratios = round_ratios(seconds["apart"], seconds["shared"])
    context = attention_length(model.config)
    alone, together = (work_of(layout.shape, context) for layout in (ids, packed.source))
    result = {
        "prompt": prompt,
        "completion": completion,
        "seconds": seconds,
        "times_fewer_tokens": ids.numel() / packed.source.numel(),
        "times_less_work": alone / together,
        "times_faster": ratios,
        "is_shared": pays(together, alone),
    }
    print(
        f"{prompt:>8}{completion:>12}{result['times_fewer_tokens']:>9.2f}{result['times_less_work']:>7.2f}"
        f"   {shown_ratio(ratios):<22}{'shares' if result['is_shared'] else 'leaves them apart'}",
        flush=True,
    )
    return result


def _seconds(model: Any, layout: Callable[..., Any], ids: Tensor, completion: int) -> float:
    labels = ids.clone()
    labels[:, :-completion] = -100
    mask = torch.ones_like(ids)
    mask[0, 0] = 0  # padding, as in any batch of several prompts: with none SDPA could take another kernel
    model.zero_grad()
    if ids.device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    with labelled_positions_only(ids.device):
        layout(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True).log_probs.sum().backward()
    if ids.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def scored_policy(size: Size) -> Any:
    """A random Qwen3 with TRL's head."""
    torch.manual_seed(0)
    model = random_policy(size)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    return model
