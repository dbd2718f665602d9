"""What a whole step costs on a pretrained model: stock TRL against ours at the same settings, in turn.

A step generates completions of synthetic questions, gives rewards that leave half of the groups dead, or none, and
updates all weights. Each process trains a step that is not timed, one with half of the groups dead and one with none;
in the first round the floating-point operations of the first step are counted. The learning rate is 0 and the seed is
the same, so that all steps of both sides generate the same tokens, and their gradients can be compared.

    python -m scripts.benchmarks.whole_step MODEL --rounds 2       # 10 minutes on two cores with a model of 135 million
    python -m scripts.benchmarks.whole_step MODEL --profile        # shares of the time by operator
    python -m scripts.benchmarks.whole_step MODEL --trls-cut       # ours with Speed's defaults
"""

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.profiler import profile, record_function
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from evenkeel.trainer.step.options import Speed
from evenkeel.trainer.step.trainer import RLVRTrainer
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio
from scripts.program import run

RUN_FILES = Speed(microbatches="planned", verify_steps=0, shared_prompts=None, generation=None, skip_old_logps=None)
"""A run file's settings, without the comparison of gradients, which is made in five steps of a run."""
VARIANTS: dict[str, Speed | None] = {"stock": None, "ours": RUN_FILES}
"""Name → speed of `RLVRTrainer`; ``None`` = `trl.GRPOTrainer`."""
PHASES = ("generation", "scoring", "update", "other")
HALF_DEAD, NONE_DEAD = "half of the groups dead", "none dead"
SAMPLE = 997
"""Every so many numbers of the gradient are compared."""


@dataclass
class Step:
    """What one optimizer step took, each by phase, and what it computed."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    operations: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    completions: list[list[int]] = field(default_factory=list)
    gradient: torch.Tensor = field(default_factory=lambda: torch.empty(0))


class Clock:
    """Counts time, and operations where they are counted, for the innermost phase."""

    def __init__(self) -> None:
        self.step, self.counter = Step(), FlopCounterMode(display=False, custom_mapping=_IN_PLACE)
        self._open: list[str] = []
        self._since = self._now()

    def _now(self) -> tuple[float, float, int]:
        return time.perf_counter(), time.process_time(), self.counter.get_total_flops()

    def count(self) -> None:
        """Count everything since the last call."""
        since, self._since = self._since, self._now()
        columns: tuple[dict[str, Any], ...] = (self.step.seconds, self.step.processor, self.step.operations)
        for column, before, now in zip(columns, since, self._since, strict=True):
            column[self._open[-1] if self._open else "other"] += now - before

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Inside, ``phase`` is open."""
        self.open(phase)
        try:
            yield
        finally:
            self.close()

    def open(self, phase: str) -> None:
        self.count()
        self._open.append(phase)

    def close(self) -> None:
        self.count()
        self._open.pop()


def _of_a_product(_: Any, first: list[int], second: list[int], **__: Any) -> int:
    """Of ``a.addmm_(first, second)``, by shapes."""
    return 2 * first[0] * first[1] * second[1]


_IN_PLACE = {torch.ops.aten.addmm_: _of_a_product}  # in TRL's head; torch's table lacks it


class Measured(TrainerCallback):
    """Opens the phases of a trainer's steps; one step a plan entry, in order.

    Args:
        trainer: stock or ours; the methods of TRL that are its phases are wrapped.
        plan: what each step is: `HALF_DEAD`, `NONE_DEAD`, or "" for a short one.
    """

    def __init__(self, trainer: Any, plan: list[str], counted: int | None = None) -> None:
        self.trainer, self.plan, self.counted = trainer, plan, counted
        self.clock, self.steps, self.number = Clock(), list[Step](), 0
        self.longest = trainer.generation_config.max_new_tokens
        self._wrap("_generate", lambda: "generation")
        self._wrap("_prepare_inputs", lambda: "other")
        self._wrap("_get_per_token_logps_and_entropies", lambda: None if torch.is_grad_enabled() else "scoring")

    def _wrap(self, name: str, phase: Callable[[], str | None]) -> None:
        plain = getattr(self.trainer, name)

        def wrapped(*positional: Any, **keywords: Any) -> Any:
            if (opened := phase()) is None:
                return plain(*positional, **keywords)
            if name == "_generate":
                torch.manual_seed(0)
            with self.clock(opened), record_function(f"phase: {opened}"):
                result = plain(*positional, **keywords)
            if name == "_generate":
                self.clock.step.completions = result[1]
            return result

        setattr(self.trainer, name, wrapped)

    def reward(self, completions: list[Any], **_: Any) -> list[float]:
        """1 for every other response of a live group, 0 for all others."""
        size, half = self.trainer.num_generations, self.plan[self.number] == HALF_DEAD
        return [float(row % 2 == 0 and not (half and row // size % 2)) for row in range(len(completions))]

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        short = not self.plan[self.number]
        self.trainer.generation_config.max_new_tokens = 4 if short else self.longest
        if self.number == self.counted:
            self.clock.counter.__enter__()
        self.clock.count()
        self.clock.step = Step()
        self.clock.open("update")
        self.span = record_function("phase: update").__enter__()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        gradients = [p.grad.flatten()[::SAMPLE] for p in self.trainer.model.parameters() if p.grad is not None]
        self.clock.step.gradient = torch.cat(gradients).clone()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.span.__exit__(None, None, None)
        self.clock.close()
        if self.number == self.counted:
            self.clock.counter.__exit__(None, None, None)
        self.steps.append(self.clock.step)
        self.number += 1
        control.should_training_stop = self.number == len(self.plan)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What is asked."""
    command.add_argument("model", type=Path, help="folder of a causal language model and its tokenizer")
    command.add_argument("--rounds", type=int, default=2, help="default %(default)s")
    command.add_argument("--prompts", type=int, default=4, help="of a step; default %(default)s")
    command.add_argument("--group-size", type=int, default=8, help="completions of a prompt; default %(default)s")
    command.add_argument("--rows-each", type=int, default=8, help="rows of a micro-batch; default %(default)s")
    command.add_argument("--longest", type=int, default=96, help="tokens of a completion at most; default %(default)s")
    command.add_argument("--profile", action="store_true", help="print shares of the time by operator instead")
    own_ways = "ours is RLVRTrainer with Speed's defaults: TRL's own ways"
    command.add_argument("--trls-cut", action="store_true", help=own_ways)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Tables of both kinds of step, or of operators."""
    ways = "TRL's own ways" if options.trls_cut else "a run file's settings"
    print(f"{date.today()}, torch {torch.__version__}, {torch.get_num_threads()} threads; ours: {ways}", flush=True)
    if options.profile:
        operators = {name: in_own_process(profiled, options, name) for name in VARIANTS}
        print(operators_table(operators))
        return operators
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in VARIANTS}
    for number in range(options.rounds):
        for name in in_turn(list(VARIANTS), number):
            found[name].append(in_own_process(timed, options, name, counts=number == 0))
            print(f"  {name}, round {number + 1} of {options.rounds}", flush=True)
    results = {kind: summary(found, kind) for kind in (HALF_DEAD, NONE_DEAD)}
    for kind, result in results.items():
        print(table(kind, result), end="\n\n", flush=True)
    return results


def in_own_process(work: Callable[..., Any], *positional: Any, **keywords: Any) -> Any:
    """The result of ``work`` in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as one:
        return one.submit(work, *positional, **keywords).result()


def timed(options: argparse.Namespace, name: str, *, counts: bool) -> dict[str, Any]:
    """One step of each kind by name, the most memory that this process has had, and the cores' peak."""
    plan = [NONE_DEAD if counts else "", HALF_DEAD, NONE_DEAD]
    measured = trained(options, name, plan, counted=0 if counts else None)
    return {
        **{plan[number]: vars(measured.steps[number]) for number in (1, 2)},
        "operations": dict(measured.steps[0].operations) if counts else {},
        "peak_bytes": most_memory(),
        "peak_operations_per_second": matrix_product_speed(),
    }


def trained(options: argparse.Namespace, name: str, plan: list[str], counted: int | None = None) -> Measured:
    """A trainer's steps as planned."""
    torch.manual_seed(0)
    speed, rewards = VARIANTS[name], list[Measured]()
    if speed is not None and options.trls_cut:
        speed = Speed(verify_steps=0)
    trainer_class: type[GRPOTrainer] = GRPOTrainer if speed is None else RLVRTrainer
    rows = options.prompts * options.group_size
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = trainer_class(
            model=AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32),
            reward_funcs=lambda completions, **columns: rewards[0].reward(completions),
            args=GRPOConfig(
                output_dir=folder,
                num_generations=options.group_size,
                per_device_train_batch_size=options.rows_each,
                gradient_accumulation_steps=rows // options.rows_each,
                max_completion_length=options.longest,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                shuffle_dataset=False,
                max_steps=1000,
                learning_rate=0.0,
            ),
            train_dataset=Dataset.from_list([{"prompt": question(number)} for number in range(options.prompts)]),
            processing_class=AutoTokenizer.from_pretrained(options.model),
            **({} if speed is None else {"speed": speed}),
        )
        rewards.append(Measured(trainer, plan, counted))
        trainer.add_callback(rewards[0])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return rewards[0]


def question(number: int) -> list[dict[str, str]]:
    """A conversation that asks for a sum."""
    apples, pears = 3 + 7 * number % 90, 2 + 11 * number % 80
    text = (
        f"A farmer picks {apples} baskets of apples and {pears} baskets of pears. He sells half of the apples at the "
        "market, gives 2 baskets of pears to a friend, and picks 5 more of each on the next day. How many baskets has "
        "he now? Think step by step and write the number at the end."
    )
    return [{"role": "user", "content": text}]


def most_memory() -> int:
    """Bytes of memory that this process has had at most."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]


def matrix_product_speed(size: int = 2048) -> float:
    """Floating-point operations a second in float32, the best of ten products."""
    first, second = torch.randn(2, size, size)
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        first @ second
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def summary(found: dict[str, list[dict[str, Any]]], kind: str) -> dict[str, Any]:
    """Each variant's times of one kind of step by round, how many times faster ours is, and what is the same."""
    steps = {name: [measured[kind] for measured in rounds] for name, rounds in found.items()}
    result: dict[str, Any] = {
        name: {
            "seconds": [dict(step["seconds"]) for step in steps[name]],
            "processor": [dict(step["processor"]) for step in steps[name]],
            "tokens": sum(map(len, steps[name][0]["completions"])),
            "peak_bytes": max(measured["peak_bytes"] for measured in rounds),
            "operations": rounds[0]["operations"] if kind == NONE_DEAD else {},
            "peak_operations_per_second": max(measured["peak_operations_per_second"] for measured in rounds),
        }
        for name, rounds in found.items()
    }
    stock, ours = (steps[name][0] for name in VARIANTS)
    same = [first == second for first, second in zip(stock["completions"], ours["completions"], strict=True)]
    difference = (stock["gradient"] - ours["gradient"]).norm() / stock["gradient"].norm()
    result |= {"same_completions": sum(same), "completions": len(same), "gradient_difference": float(difference)}
    result["faster"] = {
        clock: {
            phase: round_ratios(*([of_phase(step[clock], phase) for step in steps[name]] for name in VARIANTS))
            for phase in (*PHASES, "whole step")
            if all(of_phase(step[clock], phase) > 0.001 for each in steps.values() for step in each)
        }
        for clock in ("seconds", "processor")
    }
    return result


def of_phase(times: dict[str, float], phase: str) -> float:
    """The time of a phase, or of the whole step."""
    return sum(times.values()) if phase == "whole step" else times.get(phase, 0.0)


def table(kind: str, result: dict[str, Any]) -> str:
    """One kind of step, in Markdown."""
    lines = [f"| {kind} | stock, s | ours, s | × faster | processor time, s | ratio |", "|---|---|---|---|---|---|"]
    for phase in result["faster"]["seconds"]:
        cells = []
        for clock in ("seconds", "processor"):
            each = [[of_phase(times, phase) for times in result[name][clock]] for name in VARIANTS]
            shown = [f"{sorted(values)[len(values) // 2]:.1f}" for values in each]
            ratio = shown_ratio(result["faster"][clock][phase])
            cells += [*shown, ratio] if clock == "seconds" else [" → ".join(shown), ratio]
        lines.append(f"| {phase} | {' | '.join(cells)} |")
    tokens, memory = ([result[name][key] for name in VARIANTS] for key in ("tokens", "peak_bytes"))
    whole = [min(of_phase(times, "whole step") for times in result[name]["seconds"]) for name in VARIANTS]
    rates = [number / seconds for number, seconds in zip(tokens, whole, strict=True)]
    lines.append(f"| generated tokens a second | {rates[0]:.1f} | {rates[1]:.1f} | {rates[1] / rates[0]:.2f} | | |")
    gib = [size / 2**30 for size in memory]
    lines.append(f"| peak memory, GiB | {gib[0]:.2f} | {gib[1]:.2f} | {gib[1] / gib[0]:.2f} of stock's | | |")
    for phase in ("generation", "update"):
        if not result["stock"]["operations"]:
            continue
        made, shares = [], []
        for name in VARIANTS:
            operations = result[name]["operations"][phase]
            seconds = min(times[phase] for times in result[name]["seconds"])
            made.append(f"{operations / 1e12:.2f}")
            shares.append(f"{operations / seconds / result[name]['peak_operations_per_second']:.0%}")
        lines.append(
            f"| {phase}: of the cores' peak | {' | '.join(shares)} | | 10¹² operations: {' → '.join(made)} | |"
        )
    same = f"{result['same_completions']} of {result['completions']} completions are the same"
    lines.append(f"\n{same}; gradients differ by {result['gradient_difference']:.1e} of their size")
    return "\n".join(lines)


def profiled(options: argparse.Namespace, name: str) -> dict[str, list[list[str]]]:
    """Phase → its ten largest operators in a step without dead groups: name, share of the phase's time, calls."""
    with profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        trained(options, name, [NONE_DEAD])
    spent: dict[str, Counter[str]] = defaultdict(Counter)
    calls: dict[str, Counter[str]] = defaultdict(Counter)
    events = profiler.events()
    opened = [event for event in events if event.name.startswith("phase: ")]
    for event in events:
        started = event.time_range.start
        around = {span.name for span in opened if span.time_range.start <= started < span.time_range.end}
        phase = next((phase for phase in PHASES[:3] if f"phase: {phase}" in around), None)  # the innermost comes first
        if phase is not None and not event.name.startswith("phase: "):
            spent[phase][event.name] += event.self_cpu_time_total
            calls[phase][event.name] += 1
    return {
        phase: [
            [f"`{operator.removeprefix('aten::')}`", f"{time / operators.total():.1%}", f"{calls[phase][operator]:,}"]
            for operator, time in operators.most_common(10)
        ]
        for phase, operators in spent.items()
    }


def operators_table(found: dict[str, dict[str, list[list[str]]]]) -> str:
    """Both sides' operators of each phase, in Markdown."""
    heads = " | ".join(f"{name} | share | calls" for name in found)
    lines = [f"| phase | {heads} |", "|---" * (1 + 3 * len(found)) + "|"]
    for phase in PHASES[:3]:
        columns = [operators.get(phase, []) for operators in found.values()]
        for cells in zip_longest(*columns, fillvalue=["", "", ""]):
            lines.append(f"| {phase} | {' | '.join(cell for each in cells for cell in each)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.exit(run(__doc__, add_arguments, measure))
