"""At several machines' scale: what a step of the shipped 7B recipes needs and takes, as docs/scale.md.

    python -m scripts.scale            # writes docs/scale.md
    python -m scripts.scale --print

All of it is arithmetic from the numbers at the top of this file, but what one rollout batch says between processes,
which `python -m scripts.benchmarks.collectives` counted on two of them (scripts/collectives.json).
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenkeel.trainer.run.check.memory import ModelSize, Sharding, Training, memory_per_device
from evenkeel.trainer.run.config import RunConfig, batch_plan, load_config
from scripts.benchmarks.collectives import totals
from scripts.reference import table

ROOT = Path(__file__).parents[1]
PAGE, COUNTS = ROOT / "docs" / "scale.md", ROOT / "scripts" / "collectives.json"
MODEL = ModelSize(
    parameters=7_615_616_512,
    trained=7_615_616_512,
    layers=28,
    hidden=3584,
    intermediate=18_944,
    vocabulary=152_064,
    heads=28,
    key_value_heads=4,
    head_dim=128,
)
TENSORS = 339
"""Of Qwen2.5-7B: 12 a layer, the embeddings, the last norm and the head."""
PROMPT, MEAN = 400, 1000
"""Tokens of a prompt, and of a completion on average: assumed."""
SHARDINGS: tuple[Sharding, ...] = ("zero2", "zero3", "fsdp2")
NODE, SIZES = 8, (8, 64, 512)
BUCKET = 500_000_000
"""Values that DeepSpeed's ZeRO-2 sends at once (its default)."""
UPDATE_USE, DECODE_USE = 0.4, 0.6
BASE, HOP, NETWORK_HOP = 8.4e-6, 3.4e-6, 9.6e-6
VLLM_SHARE = 0.3
"""TRL's `vllm_gpu_memory_utilization`."""


@dataclass(frozen=True)
class Device:
    """A GPU: bytes, operations a second, bytes a second from its memory, in its node and to the network."""

    name: str
    memory: float
    peak: float
    bandwidth: float
    link: float = 370e9
    network: float = 47e9


H100, H200 = Device("H100", 80e9, 989e12, 3.35e12), Device("H200", 141e9, 989e12, 4.8e12)


def sources() -> Iterator[tuple[str, ...]]:
    """Every stated number: what it is, on each device, and where it is from."""
    llama = "[Llama 3](https://arxiv.org/abs/2407.21783): 38 to 43 %"
    nccl = "https://github.com/NVIDIA/nccl"
    mlperf = "[MLPerf](https://github.com/mlcommons/inference_results_v4.1), systems of NVIDIA's"
    chip = "[H100](https://glennklockwood.com/garden/processors/h100); the same chip"
    h200 = "the same; [H200](https://github.com/NVIDIA/TensorRT-LLM/issues/1570)"
    link = f"[NCCL's maintainer]({nccl}-tests/issues/212), of 450"
    adapter = f"[NCCL's maintainer]({nccl}-tests/issues/290): 46 to 48"
    both = (H100, H200)
    yield "memory, GB", *(f"{each.memory / 1e9:g}" for each in both), mlperf
    yield "dense bfloat16, TFLOP/s", *(f"{each.peak / 1e12:g}" for each in both), chip
    yield "memory bandwidth, TB/s", *(f"{each.bandwidth / 1e12:g}" for each in both), h200
    yield "NVLink, in a ring, GB/s", *(f"{each.link / 1e9:g}" for each in both), link
    yield "network, one adapter of 400 Gb/s a GPU, GB/s", *(f"{each.network / 1e9:g}" for each in both), adapter
    hops = "; ".join(f"{seconds * 1e6:g}" for seconds in (BASE, HOP, NETWORK_HOP))
    yield "a collective; a hop in a node; between nodes, µs", hops, "the same", f"[NCCL]({nccl}) `tuning.cc`"
    yield "share of the peak in updates", f"{100 * UPDATE_USE:.0f} %", "the same", f"**assumed**; {llama}"
    yield "share of the bandwidth in decoding", f"{100 * DECODE_USE:.0f} %", "the same", "**assumed**"
    tokens = f"{PROMPT}; {MEAN:,}; the limit"
    yield "tokens of a prompt; of a completion, mean; longest", tokens, "the same", "**assumed**"


@dataclass(frozen=True)
class Recipe:
    """What of a recipe decides its speed; ``forwards``: passes over a rollout batch that only score it."""

    sequences: int
    update: int
    rows: int
    group: int
    limit: int
    forwards: int
    passes: int
    reference: bool

    def grown(self, devices: int) -> "Recipe":
        """With as many times the sequences as it takes to give each device one micro-batch."""
        times = math.ceil(self.rows * devices / self.update)
        return replace(self, sequences=times * self.sequences, update=times * self.update)

    @property
    def steps(self) -> int:
        """Optimizer steps of a rollout batch."""
        return self.sequences // self.update * self.passes

    def microbatches(self, devices: int) -> int:
        """Of one device in an optimizer step."""
        return self.update // (self.rows * devices)


def recipe_of(config: RunConfig) -> Recipe:
    """A run file, on as many devices as its file says."""
    plan = batch_plan(config, config.num_processes or 1)
    passes = 2 if "lopti" in str(config.algorithm.update_schedule) else 1
    reference = bool(config.trl["beta"])
    one_step = plan.optimizer_steps_per_rollout * passes == 1
    return Recipe(
        plan.sequences_per_rollout,
        plan.sequences_per_update,
        plan.per_device_train_batch_size,
        plan.num_generations,
        config.trl["max_completion_length"],
        int(not one_step) + int(reference),
        passes,
        reference,
    )


def ring_seconds(sent: float, collectives: float, devices: int, device: Device) -> float:
    """All-gathers or reduce-scatters of ``sent`` bytes in all, in a ring over every device.

    ``collectives · (base + hops in nodes + hops between them) + sent · (n − 1) / n / bandwidth``. A node's adapters
    carry the ring together, so the bandwidth is the least of NVLink's and theirs.
    """
    nodes = math.ceil(devices / NODE)
    latency = BASE + (devices - nodes) * HOP + (nodes - 1) * NETWORK_HOP
    bandwidth = device.link if nodes == 1 else min(device.link, NODE * device.network)
    return collectives * latency + sent * (devices - 1) / devices / bandwidth


def training_traffic(
    model: ModelSize, sharding: Sharding, steps: int, microbatches: int, scored: int
) -> tuple[int, int]:
    """Bytes and collectives of one device's weights and gradients in a rollout batch, in bfloat16.

    ZeRO-2 reduces the gradients of each micro-batch and gathers the weights once a step, in buckets; ZeRO-3 gathers the
    weights layer by layer in each forward and backward and reduces each micro-batch; FSDP2 the same, but accelerate has
    it reduce once a step. ``microbatches`` of a step; ``scored``: micro-batches that are only scored.
    """
    whole, buckets, layers = 2 * model.parameters, math.ceil(model.parameters / BUCKET), model.layers + 1
    trained = steps * microbatches
    if sharding == "zero2":
        return whole * (trained + steps), buckets * (trained + steps)
    reduced = trained if sharding == "zero3" else steps
    times = 2 * trained + scored + reduced
    return whole * times, layers * times


def sync_traffic(model: ModelSize, sharding: Sharding) -> tuple[int, int]:
    """Bytes and collectives that a weight sync to an engine on every device takes: one for each tensor.

    Under ZeRO-2 each device has the weights; FSDP2 gathers those in float32.
    """
    width = {"zero2": 0, "zero3": 2, "fsdp2": 4}[sharding]
    return width * model.parameters, TENSORS if width else 0


def crossing_seconds(model: ModelSize, devices: int, device: Device) -> float:
    """A weight sync to engines on ``devices`` others: one device broadcasts each tensor through its adapter."""
    return ring_seconds(0, TENSORS, devices + 1, device) + 2 * model.parameters / device.network


def decoding_seconds(model: ModelSize, recipe: Recipe, devices: int, device: Device) -> float:
    """Generation of one device's rows of a rollout batch by an engine of its own.

    Each of its decoding steps reads the weights once and the keys and values of the rows that it holds at once; there
    are as many as the longest completion has tokens, or more where not all rows fit. The greater of reading and
    computing counts.
    """
    rows = math.ceil(recipe.sequences / devices)
    of_a_token = 4 * model.layers * model.key_value_heads * model.head_dim
    room = VLLM_SHARE * device.memory - 2 * model.parameters
    at_once = room // (of_a_token * (PROMPT + MEAN))
    steps = max(recipe.limit, rows * MEAN / at_once)
    read = steps * 2 * model.parameters + rows * of_a_token * (PROMPT * MEAN + MEAN**2 / 2)
    computed = 2 * model.parameters * rows * (PROMPT / recipe.group + MEAN)
    return max(read / (device.bandwidth * DECODE_USE), computed / (device.peak * UPDATE_USE))


def computing_seconds(model: ModelSize, recipe: Recipe, devices: int, device: Device) -> float:
    """Updates of a rollout batch, its scoring among them: 2 operations a parameter, a token and a pass; a training step
    with gradient checkpointing has four passes, a forward that scores is one."""
    tokens = recipe.sequences * (PROMPT + MEAN)
    passes = 4 * recipe.passes + recipe.forwards
    return 2 * model.parameters * tokens * passes / (devices * device.peak * UPDATE_USE)


def terms(counted: Sequence[int], steps: int, microbatches: int) -> tuple[float, float, float]:
    """``(batch, step, micro-batch)`` of counts ``batch + steps · (step + microbatches · micro-batch)``, from three: of
    so many steps of so many micro-batches, of twice the steps, and of twice both."""
    first, second, third = counted
    of_microbatch = (third - second) / (2 * steps * microbatches)
    of_step = (second - first) / steps - microbatches * of_microbatch
    return first - steps * (of_step + microbatches * of_microbatch), of_step, of_microbatch


def predicted(of: Sequence[float], steps: int, microbatches: int) -> int:
    """The count of `terms`, to the nearest whole number."""
    batch, step, microbatch = of
    return round(batch + steps * (step + microbatches * microbatch))


@dataclass(frozen=True)
class Step:
    """A rollout batch of a recipe on so many devices: bytes of memory a device, traffic of the weights, seconds."""

    memory: int
    sync_bytes: int
    sent_bytes: int
    collectives: int
    seconds: dict[str, float]
    crossing: float

    @property
    def update_seconds(self) -> float:
        return max(self.seconds["computing"], self.seconds["sending"])

    @property
    def generation(self) -> float:
        return self.seconds["generation"] + self.seconds["weight sync"]

    def whole(self, overlap: int | None = None) -> float:
        """One after the other, or ``max(generation / (1 + overlap) + crossing, update)``."""
        if overlap is None:
            return self.generation + self.update_seconds
        return max(self.generation / (1 + overlap) + self.crossing, self.update_seconds)


Terms = Mapping[str, Sequence[float]]
"""`terms` of collectives and of host waits."""


def step_of(recipe: Recipe, sharding: Sharding, devices: int, device: Device, counts: Terms) -> Step:
    """What one rollout batch takes."""
    microbatches = recipe.microbatches(devices)
    scored = recipe.forwards * recipe.sequences // (recipe.rows * devices)
    sent, collectives = training_traffic(MODEL, sharding, recipe.steps, microbatches, scored)
    synced, gathers = sync_traffic(MODEL, sharding)
    training = Training(
        rows=recipe.rows,
        tokens=PROMPT + recipe.limit,
        reference=recipe.reference,
        microbatches=microbatches,
        vllm_bytes=round(VLLM_SHARE * device.memory),
    )
    return Step(
        memory_per_device(MODEL, training, sharding, devices).peak,
        synced,
        sent,
        collectives + gathers + predicted(counts["collectives"], recipe.steps, microbatches),
        {
            "generation": decoding_seconds(MODEL, recipe, devices, device),
            "weight sync": ring_seconds(synced, gathers, devices, device),
            "computing": computing_seconds(MODEL, recipe, devices, device),
            "sending": ring_seconds(sent, collectives, devices, device),
        },
        crossing_seconds(MODEL, devices, device),
    )


def bottleneck(recipe: Recipe, sharding: Sharding, devices: int, device: Device, counts: Terms) -> str:
    """What stands in the way first: the batch, the memory, or the longest part of the time."""
    if recipe.microbatches(devices) == 0:
        return "the batch"
    step = step_of(recipe, sharding, devices, device, counts)
    if step.memory > device.memory:
        return "memory"
    longest = max(step.seconds, key=step.seconds.__getitem__)
    if longest != "generation":
        return longest
    floor = recipe.limit * 2 * MODEL.parameters / (device.bandwidth * DECODE_USE)
    return "the longest completion" if floor > step.seconds["generation"] / 2 else "generation"


def recipes() -> dict[Recipe, list[str]]:
    """Those of a 7B model that train all weights, by what decides their speed."""
    found = defaultdict(list)
    for path in sorted((ROOT / "configs").glob("*/*_7b.yaml")):
        if path.parent.name == "sweeps":
            continue
        config = load_config(str(path), [])
        if "-7B" in config.model.name_or_path and config.model.quantization is None:
            found[recipe_of(config)].append(f"{path.parent.name}/{path.stem}")
    return dict(found)


HEAD = """\
# At several machines' scale

```bash
python -m scripts.benchmarks.collectives --json scripts/collectives.json    # counts on two processes, 2 minutes
python -m scripts.scale                                                     # writes this page
```

**No GPU has run any of this.** Memory is `evenkeel check`'s estimate. Counts of collectives and waits are **measured**
on two processes of the [stand-in device](devices.md#the-stand-in-device), without a vLLM server and without the
gradients; from collectives, and from the numbers of the next table, all else is **arithmetic** (`scripts/scale.py`).
"""
MODEL_TEXT = f"""
A rollout batch is generated by an engine on every device (vLLM, `colocate`, {100 * VLLM_SHARE:.0f} % of the memory),
which reads all weights for each token of the longest completion; scored; and trained, while weights and gradients are
sent. One after the other that is generation + weight sync + update. With the engine on as many devices again, which
the weights reach through one adapter, it is max((generation + weight sync) / (1 + overlap) + that, update):
[`speed.overlap_generation`](lag.md) keeps one batch in flight, overlap 0.
"""


def page(measured: Mapping[str, Any]) -> str:
    """The page; ``measured`` by `scripts.benchmarks.collectives`."""
    found = counts_of(measured["counted"])
    parts = [
        HEAD,
        "## Stated numbers\n\n" + table(("", "H100 SXM", "H200 SXM", "source"), sources()),
        MODEL_TEXT,
        "## The recipes on H100\n\n" + "\n".join(recipe_lines(found)),
        "## How the model is divided\n\n" + "\n".join(sharding_lines(found)),
        "## What is said between processes\n\n" + "\n".join(count_lines(measured, found)),
    ]
    return "\n".join(part.strip() + "\n" for part in parts)


def counts_of(counted: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """`terms` of the first three settings."""
    steps, microbatches = counted[0]["steps"], counted[0]["microbatches"]
    names = ("collectives", "host waits")
    return {name: terms([totals(each)[name] for each in counted[:3]], steps, microbatches) for name in names}


def recipe_lines(found: Terms) -> Iterator[str]:
    """Every recipe under ZeRO-3, as their headers launch them."""
    yield "ZeRO-3, seconds of a rollout batch. A batch with less than a micro-batch a device is refused: the"
    yield "numbers are then those of a recipe with 8 × the prompts. First bottlenecks, with the number of recipes:\n"
    for devices in SIZES:
        first = Counter[str]()
        for recipe, names in recipes().items():
            first[bottleneck(recipe, "zero3", devices, H100, found)] += len(names)
        yield f"- {devices} devices: {', '.join(f'**{what}** ({number})' for what, number in first.items())}"
    yield ""
    rows = []
    for recipe, names in recipes().items():
        for devices in SIZES:
            shown = recipe if recipe.microbatches(devices) else recipe.grown(devices)
            step = step_of(shown, "zero3", devices, H100, found)
            times = shown.update // recipe.update
            grown = f" ({times} ×)" if times > 1 else ""
            rows.append(
                (
                    "<br>".join(f"`{name}`" for name in names) if devices == SIZES[0] else "",
                    devices,
                    f"{shown.update * (PROMPT + MEAN):,}{grown}",
                    shown.steps,
                    *(f"{step.seconds[name]:.1f}" for name in ("generation", "weight sync", "computing", "sending")),
                    f"{step.whole():.1f}",
                    f"{step.whole(0):.1f}",
                    bottleneck(recipe, "zero3", devices, H100, found),
                )
            )
    head = ("recipe", "devices", "tokens a step", "steps", "generation", "weight sync", "computing", "sending")
    yield table((*head, "one after the other", "overlap 0", "first bottleneck"), rows)


def sharding_lines(found: Terms) -> Iterator[str]:
    """The Knights & Knaves recipe under each sharding, on both devices."""
    recipe = next(each for each, names in recipes().items() if "knights_knaves/grpo_7b" in names)
    yield "`knights_knaves/grpo_7b`, at 512 devices with 8 × the prompts. Sent are weights and gradients."
    yield "FSDP2 reduces gradients once a step: with several micro-batches each device holds all of them until then.\n"
    rows = []
    for device in (H100, H200):
        for devices in SIZES:
            for sharding in SHARDINGS:
                shown = recipe if recipe.microbatches(devices) else recipe.grown(devices)
                step = step_of(shown, sharding, devices, device, found)
                rows.append(
                    (
                        device.name,
                        devices,
                        {"zero2": "ZeRO-2", "zero3": "ZeRO-3", "fsdp2": "FSDP2"}[sharding],
                        f"{step.memory / 1e9:.0f}",
                        f"{step.sync_bytes / 1e9:.0f}",
                        f"{step.sent_bytes / 1e9:,.0f}",
                        f"{step.collectives:,}",
                        f"{step.generation:.1f}",
                        f"{step.update_seconds:.1f}",
                        f"{step.whole():.1f}",
                        bottleneck(recipe, sharding, devices, device, found),
                    )
                )
    head = ("device", "devices", "divided by", "memory, GB", "weight sync, GB", "sent, GB", "collectives")
    yield table((*head, "generation, s", "update, s", "whole, s", "first bottleneck"), rows)


def count_lines(measured: Mapping[str, Any], found: Terms) -> Iterator[str]:
    """What was measured."""
    counted, last = measured["counted"], measured["counted"][-1]
    yield "A rollout batch of s optimizer steps of m micro-batches of the tiny policy, on two processes. Of the host's"
    yield "waits, those of generation grow with its tokens, here 8 at most:\n"
    rows = []
    for name, of in found.items():
        formula = f"{of[0]:.0f} + s · ({of[1]:.1f} + m · {of[2]:.1f})"
        numbers = [totals(each)[name] for each in counted]
        rows.append((name, *numbers, formula, predicted(of, last["steps"], last["microbatches"])))
    settings = (f"s = {each['steps']}, m = {each['microbatches']}" for each in counted)
    yield table(("", *settings, "from the first three", "gives the last as"), rows)
    both = [measured["stock"], counted[0]]
    yield "\nBy the code that asks, with s = 2 and m = 2; places without a package are Evenkeel's:\n"
    places = sorted({where for each in both for where in each["counts"]})
    times = {where: [each["counts"].get(where, "–") for each in both] for where in places}
    rows = [(f"`{where.split(' ', 1)[0]}`", where.split(" ", 1)[1], *times[where]) for where in places]
    summed = [f"{found['collectives']} collectives, {found['host waits']} waits" for found in map(totals, both)]
    yield table(("place", "operation", "stock TRL", "Evenkeel"), [*rows, ("all", "", *summed)])


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--print", action="store_true", help="print the page and write nothing")
    text = page(json.loads(COUNTS.read_text()))
    if command.parse_args(argv).print:
        print(text, end="")
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
