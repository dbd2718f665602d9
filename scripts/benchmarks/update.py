"""What an update costs: stock TRL against ours on the same synthetic rollout batches, in turn, in one process.

Rollouts come from TRL's ``rollout_func`` and cost nothing: prompts of one length, completions of log-normal lengths
(σ = 0.8), and rewards that leave half of the groups dead, or none. A timed update is everything that TRL does with such
a batch: scoring where it scores, forwards, backwards, the optimizer's step. Each round runs every variant on the same
rollout batch in an order that changes from round to round; ratios are taken within a round, so that a machine that
others slow down slows both sides. ``floor`` is the share of the computed tokens that no exact update can do without.

    python -m scripts.benchmarks.update                              # 5 minutes on two cores
    python -m scripts.benchmarks.update --size gpu --device cuda     # half a billion random weights in bfloat16
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from evenkeel.trainer.step.options import Speed
from evenkeel.trainer.step.trainer import RLVRTrainer
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.program import run

SIGMA = 0.8
_PLANNED = {"speed": Speed(microbatches="planned")}
_AR = {"token_weight": {"name": "adv_reweight", "alpha": 0.2}}
_LOPTI = {"update_schedule": {"name": "lopti", "eta": 0.001}}  # probabilities of a random model are about 1 / 1024
VARIANTS: dict[str, dict[str, Any] | None] = {
    "stock": None,
    "planned": _PLANNED,
    "planned+ar": {**_PLANNED, **_AR},
    "planned+exchangeable": {**_PLANNED, "advantage": "exchangeable"},
    "planned+lopti": {**_PLANNED, **_LOPTI},
}
"""Name → keywords of `RLVRTrainer`; ``None`` = `trl.GRPOTrainer`."""


@dataclass(frozen=True)
class Size:
    """A random Qwen3 and the rollout batches it is updated on."""

    hidden: int
    layers: int
    vocabulary: int
    dtype: str
    prompts: int
    group_size: int
    rows_each: int
    prompt_length: int
    median_length: int
    longest: int

    @property
    def rows(self) -> int:
        """Completions of a rollout batch."""
        return self.prompts * self.group_size


SIZES = {
    "cpu": Size(128, 4, 1024, "float32", 8, 4, 4, 24, 50, 256),
    "gpu": Size(896, 24, 151_936, "bfloat16", 64, 8, 16, 200, 600, 4096),
}
"""``cpu`` for two cores in minutes; ``gpu`` is a model of half a billion parameters."""


@dataclass
class Timing:
    """Seconds of each round's update; tokens of the last one's forward passes under a gradient."""

    seconds: list[float] = field(default_factory=list)
    tokens: int = 0
    peak_bytes: int = 0


class SyntheticRollouts:
    """``rollout_func`` and reward function of round ``number``: the same for every variant."""

    def __init__(self, size: Size, *, half_dead: bool, all_dead: bool = False) -> None:
        self.size, self.half_dead, self.all_dead, self.number = size, half_dead, all_dead, 0

    def lengths(self) -> torch.Tensor:
        """(rows,) tokens of each completion in this round."""
        generator = torch.Generator().manual_seed(self.number)
        drawn = torch.randn(self.size.rows, generator=generator).mul(SIGMA).exp() * self.size.median_length
        return drawn.long().clamp(1, self.size.longest)

    def alive(self) -> torch.Tensor:
        """(rows,) whether the row's group has something to teach."""
        groups = torch.arange(self.size.rows) // self.size.group_size
        return (groups % 2 == 0) if self.half_dead else torch.full_like(groups, not self.all_dead).bool()

    def floor(self) -> int:
        """Tokens that no exact update can do without: rows with a gradient, their prompts included."""
        return int(((self.lengths() + self.size.prompt_length) * self.alive()).sum())

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(self.number + 1)
        draw = (2, self.size.vocabulary)
        ids = [torch.randint(*draw, (self.size.prompt_length,), generator=generator).tolist() for _ in prompts]
        completions = [torch.randint(*draw, (n,), generator=generator).tolist() for n in self.lengths().tolist()]
        return {"prompt_ids": ids, "completion_ids": completions, "logprobs": None}

    def reward(self, completions: list[Any], **_: Any) -> list[float]:
        """1 for every other response of a live group, 0 for all others."""
        return [float(alive and row % 2 == 0) for row, alive in enumerate(self.alive().tolist())]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What is asked."""
    command.add_argument("--rounds", type=int, default=4, help="default %(default)s")
    command.add_argument("--size", choices=list(SIZES), default="cpu", help="model and rollout batch; default cpu")
    command.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Both kinds of rollout batch; a table each."""
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{date.today()}, {name}, torch {torch.__version__}", flush=True)
    results = []
    for half_dead in (True, False):
        size = SIZES[options.size]
        results.append(compared_updates(size, half_dead=half_dead, rounds=options.rounds, device=options.device))
        print(table(results[-1]), end="\n\n", flush=True)
    return {"device": name, "results": results}


def table(result: dict[str, Any]) -> str:
    """The measurements of one kind of rollout batch."""
    title = "half of the groups dead" if result["half_dead"] else "no dead groups"
    lines = [
        f"{title}: {result['overhead']:.0%} of stock's update is not computation",
        f"{'variant':<24}{'seconds':>9}{'tokens':>10}{'floor':>8}   {'× faster than stock':<24}× faster than planned",
    ]
    for name, measured in result["variants"].items():
        seconds = sorted(measured["seconds"])[len(measured["seconds"]) // 2]
        ratios = [shown_ratio(measured[name]) for name in ("faster_than_stock", "faster_than_planned")]
        share = f"{measured['share_of_floor']:.0%}"
        lines.append(f"{name:<24}{seconds:>9.2f}{measured['tokens']:>10,}{share:>8}   {ratios[0]:<24}{ratios[1]}")
        if measured["peak_bytes"]:
            lines[-1] += f"   {measured['peak_bytes'] / 2**30:.1f} GiB"
    lines += [f"{name} fell back to TRL's micro-batches" for name in result["fell_back"]]
    return "\n".join(lines)


def compared_updates(
    size: Size, *, half_dead: bool, rounds: int, device: str, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Seconds, tokens and ratios to ``stock`` of every variant, and what of its time is not computation.

    ``overhead``: the share of stock's update that as many micro-batches of a row of padding take, Python and all.
    """
    rollouts = SyntheticRollouts(size, half_dead=half_dead)
    timings = {name: Timing() for name in VARIANTS}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainers = {name: _trainer(Path(folder), size, rollouts, name, device) for name in VARIANTS}
        for number in range(rounds + 1):  # the first one warms up: planned gradients are verified, caches filled
            rollouts.number = number
            for name in in_turn(list(VARIANTS), number):
                seconds, timings[name].tokens, timings[name].peak_bytes = _update(trainers[name], device)
                if number:
                    timings[name].seconds.append(seconds)
            say(f"  round {number} of {rounds}" + ("" if number else " (not counted)"))
        rollouts.half_dead, rollouts.all_dead = False, True
        overhead = min(_update(trainers["planned"], device)[0] for _ in range(3))
        fell_back = [name for name, t in trainers.items() if "planned" in name and t.parts.microbatches.planner is None]
    rollouts.half_dead, rollouts.all_dead, rollouts.number = half_dead, False, rounds
    return {
        "half_dead": half_dead,
        "token_floor": rollouts.floor(),
        "overhead": overhead / statistics.median(timings["stock"].seconds),
        "fell_back": fell_back,
        "variants": {name: _summary(timing, timings, rollouts.floor()) for name, timing in timings.items()},
    }


def _summary(timing: Timing, timings: Mapping[str, Timing], floor: int) -> dict[str, Any]:
    return {
        "seconds": timing.seconds,
        "tokens": timing.tokens,
        "share_of_floor": floor / timing.tokens,
        "peak_bytes": timing.peak_bytes,
        "faster_than_stock": round_ratios(timings["stock"].seconds, timing.seconds),
        "faster_than_planned": round_ratios(timings["planned"].seconds, timing.seconds),
    }


def _trainer(folder: Path, size: Size, rollouts: SyntheticRollouts, name: str, device: str) -> Any:
    torch.manual_seed(0)
    keywords = VARIANTS[name]
    trainer_class: type[GRPOTrainer] = GRPOTrainer if keywords is None else RLVRTrainer
    steps = size.rows // size.rows_each
    trainer = trainer_class(
        model=random_policy(size),
        reward_funcs=rollouts.reward,
        args=GRPOConfig(
            output_dir=str(folder / name),
            num_generations=size.group_size,
            per_device_train_batch_size=size.rows_each,
            gradient_accumulation_steps=steps,
            max_completion_length=size.longest,
            use_cpu=device == "cpu",
            bf16=False,
            gradient_checkpointing=size.longest > 1024,
            report_to="none",
            save_strategy="no",
            max_steps=1000,
            learning_rate=1e-6,
        ),
        train_dataset=Dataset.from_list([{"prompt": "a"}]),
        processing_class=word_tokenizer(),
        rollout_func=rollouts,
        **(keywords or {}),
    )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = steps
    trainer.create_optimizer()
    return trainer


def _update(trainer: Any, device: str) -> tuple[float, int, int]:
    """Seconds of one rollout batch's update, tokens of its forward passes under a gradient, peak memory."""
    tokens = 0

    def count(module: Any, positional: Any, keywords: dict[str, Any]) -> None:
        nonlocal tokens
        tokens += keywords["input_ids"].numel() if torch.is_grad_enabled() else 0

    hook = trainer.model.register_forward_pre_hook(count, with_kwargs=True)
    rows = [{"prompt": "a"}] * (trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    for _ in range(trainer.num_iterations):
        for _ in range(trainer.args.gradient_accumulation_steps):
            trainer.training_step(trainer.model, rows, None)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    hook.remove()
    trainer._metrics["train"].clear()
    return seconds, tokens, torch.cuda.max_memory_allocated() if device == "cuda" else 0


def random_policy(size: Size) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=4 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.hidden // 64,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=2 * size.longest,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config).to(getattr(torch, size.dtype))


def word_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
