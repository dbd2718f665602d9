"""Which paths are tried, in which order: what later ones look at is made by earlier ones."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.gpu.paths import (
    SERVER_PORT,
    STEPS,
    AcceptancePath,
    Facts,
    PathError,
    Place,
    needs,
    sharded,
    trained,
    training,
)
from tests.paths import ROOT

LORA = "model.lora={r: 8, lora_alpha: 32, target_modules: all-linear}"
QLORA = "model.quantization={load_in_4bit: true}"
VLLM = ("trl.use_vllm=true", "trl.vllm_max_model_length=256", "trl.vllm_gpu_memory_utilization=0.3")


def paths() -> list[AcceptancePath]:
    """All of them: what only a GPU can say, first what matters most; the table of docs/devices.md."""
    return [*_training(), *_speed_and_memory(), *_vllm(), *_sharding(), *_other_ways()]


def _simple(
    name: str, what: str, unknown: str, advice: str, *settings: str, gpus: int = 0, packages: tuple[str, ...] = ()
) -> AcceptancePath:
    return AcceptancePath(
        name,
        what,
        unknown,
        advice,
        needs(*packages, gpus=gpus),
        lambda place: [training(place, name, *settings)],
        lambda place: trained(place, name),
    )


def _measured(name: str, what: str, unknown: str, advice: str) -> AcceptancePath:
    """One of tests/gpu/measures.py."""

    def commands(place: Place) -> list[list[str]]:
        return [[sys.executable, "-m", "tests.gpu.measures", name]]

    def facts(place: Place) -> Facts:
        return dict(json.loads((place.folder / f"{name}.log").read_text().splitlines()[-1]))

    return AcceptancePath(name, what, unknown, advice, needs(), commands, facts)


def _training() -> list[AcceptancePath]:
    bf16 = _simple(
        "bf16",
        "one process, bfloat16 autocast",
        "whether a run trains on CUDA at all",
        "Failed: nothing below counts. Its log names the line.",
        "trl.bf16=true",
    )

    def missing(place: Place) -> str:
        return "the GPU does not compute in bfloat16" if place.machine.gpus and not place.machine.bf16 else ""

    def rounded(place: Place) -> Facts:
        facts = trained(place, "rounding")
        entries = [json.loads(line) for line in (place.run("rounding") / "metrics.jsonl").read_text().splitlines()]
        for name in ("rounding/log_prob/mean_abs", "rounding/coefficient/mean"):
            found = [entry[name] for entry in entries if name in entry]
            if not found:
                raise PathError(f"{name} was never logged")
            facts[name] = sum(found) / len(found)
        return facts

    return [
        replace(bf16, missing=missing),
        _measured(
            "parity",
            "stock TRL twice and our defaults once, three steps",
            "equality with stock TRL bit for bit on CUDA's kernels",
            "0: equal. As far from TRL as TRL is from itself: kernels that add in no fixed order. Farther: a fault of "
            "ours; report it.",
        ),
        AcceptancePath(
            "rounding",
            "DFPO's product form, two iterations a batch",
            "the size of bfloat16's rounding noise of log π between the scoring and the training pass",
            "Take its row of the table of rounding noise above, which is printed for assumed sizes. Coefficient under "
            ".95 or over 1.05: `weight: geometric`, one optimizer step a batch, or float32.",
            needs(),
            lambda place: [
                training(
                    place,
                    "rounding",
                    "algorithm.advantage=dr_grpo",
                    "algorithm.coefficient={name: dfpo_min_replace, weight: product}",
                    "trl.loss_type=cispo",
                    "trl.num_iterations=2",
                )
            ],
            rounded,
        ),
        _measured(
            "planned",
            "planned micro-batches' gradient against TRL's, three steps",
            "how far the two cuts' gradients differ by CUDA's rounding, where .05 is allowed",
            "Over .05: a run falls back to TRL's cut by itself and keeps both gradients; report the file. Under .02: "
            "as on a CPU.",
        ),
        AcceptancePath(
            "cancellation",
            "the shared tokens' part of the parameters' gradient",
            "what CUDA's bfloat16 kernels leave of the cancellation of shared tokens",
            "Exchangeable in bfloat16 over .02 (a CPU: .003): rows of one batch are rounded differently; "
            "`attn_implementation: eager` or float32 says whether attention is it.",
            needs(),
            lambda _: [[sys.executable, "-m", "scripts.research", "cancellation", "--parameters", "--prompts", "4",
                        "--rollouts", "1"]],
            _left_in_parameters,
        ),
        AcceptancePath(
            "resume",
            f"stopped after {STEPS // 2} of {STEPS} steps, and gone on",
            "whether a resumed run equals a whole one bit for bit on CUDA",
            "Differs, and `parity` says that TRL differs from itself as far: float atomics, not the resume. Differs "
            "while TRL equals itself: report it.",
            lambda _: "",
            _resumed,
            _same_end,
        ),
    ]  # fmt: skip


def _left_in_parameters(place: Place) -> Facts:
    """Of the table that `scripts.research cancellation --parameters` prints."""
    lines = (place.folder / "cancellation.log").read_text().splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    if not rows:
        raise PathError("no table was printed")
    return {f"{advantage}, {precision}": float(left) for advantage, precision, left, _ in rows}


def _speed_and_memory() -> list[AcceptancePath]:
    def measured(place: Place) -> list[list[str]]:
        command = [sys.executable, "-m", "scripts.benchmarks", "update"]
        where = ["--size", "gpu", "--device", "cuda"] if place.machine.gpus else []
        return [[*command, "--rounds", "1", *where, "--json", str(_speed(place))]]

    return [
        AcceptancePath(
            "benchmark",
            "the update phase measured, one round",
            "how much faster the update is on a GPU, and its peak of memory beside stock TRL's",
            "Ratio under 1: `microbatches: trl`. Memory over 1.01 of TRL's: report it.",
            lambda _: "",
            measured,
            _speeds,
        ),
    ]


def _sharding() -> list[AcceptancePath]:
    def compiled(place: Place) -> str:
        return needs("deepspeed")(place) or ("" if place.machine.compiler else "DeepSpeed needs a C++ compiler")

    cpu = ("trl.use_cpu=false", "trl.ddp_backend=gloo")
    return [
        AcceptancePath(
            "zero2",
            "DeepSpeed ZeRO-2",
            "DeepSpeed on CUDA; on two GPUs NCCL's collectives",
            "Failed on two GPUs and not on one (`CUDA_VISIBLE_DEVICES=0`): a collective; its log names the line.",
            compiled,
            lambda place: [sharded(place, "zero2", "zero2.yaml", cpu=cpu)],
            lambda place: {**trained(place, "zero2"), **_shards(place, "zero2", "global_step*")},
            one_gpu=False,
        ),
        AcceptancePath(
            "fsdp2",
            "PyTorch FSDP2",
            "FSDP2, which needs a device; on two GPUs NCCL's collectives",
            "As for zero2.",
            needs(gpus=1),
            lambda place: [sharded(place, "fsdp2", "fsdp2.yaml")],
            lambda place: {**trained(place, "fsdp2"), **_shards(place, "fsdp2", "pytorch_model_fsdp*")},
            one_gpu=False,
        ),
    ]


def _shards(place: Place, name: str, pattern: str) -> Facts:
    """That what was asked for is what ran: its own files lie in the checkpoint."""
    checkpoint = place.run(name) / f"checkpoint-{STEPS}"
    if not any(checkpoint.glob(pattern)):
        raise PathError(f"{checkpoint.name} holds no {pattern}: something else was trained than {name}")
    if not (checkpoint / "model.safetensors").exists():
        raise PathError(f"{checkpoint.name} holds no model.safetensors")
    return {"processes": place.machine.processes()}


def _vllm() -> list[AcceptancePath]:
    def server(place: Place) -> list[str]:
        model = place.model or str(ROOT / "configs" / "tiny_policy" / "countdown")
        command = [str(Path(sys.executable).with_name("trl")), "vllm-serve", "--model", model]
        return [*command, "--port", str(SERVER_PORT), "--max_model_len", "256", "--gpu_memory_utilization", "0.3"]

    def through_server(place: Place) -> list[list[str]]:
        return [training(place, "vllm_server", *VLLM, "trl.vllm_mode=server", f"trl.vllm_server_port={SERVER_PORT}")]

    asleep = (*VLLM, "trl.vllm_mode=colocate", "trl.vllm_enable_sleep_mode=true", "algorithm.prompt_sampler=dynamic")
    return [
        _simple(
            "vllm_colocate",
            "vLLM in the trainer's process, asleep during updates, dynamic sampling",
            "vLLM's sleep mode, its CUDA engine and the room that both leave each other",
            "Out of memory: lower `vllm_gpu_memory_utilization`. Failed elsewhere: run it without "
            "`vllm_enable_sleep_mode`, and report which of the two fails.",
            *asleep,
            gpus=1,
            packages=("vllm",),
        ),
        AcceptancePath(
            "vllm_server",
            "vLLM as a server on the second GPU",
            "TRL's transport of the weights, which takes NCCL between two GPUs",
            "Failed in the first sync: TRL's transport; `vllm_mode: colocate` needs none.",
            needs("vllm", gpus=2),
            through_server,
            lambda place: trained(place, "vllm_server"),
            server=server,
        ),
        AcceptancePath(
            "agreement",
            "vLLM's log-probabilities are the trainer's",
            "how far vLLM's and the trainer's log-probabilities differ on CUDA, where .5 is allowed in bfloat16",
            "Set `vllm.agreement_bound` to about three times the gap seen: .5 is wide because it was never measured.",
            _no_vllm,
            lambda _: [],
            _agreement,
        ),
    ]


def _no_vllm(place: Place) -> str:
    return "" if {"vllm_colocate", "vllm_server"} & place.earlier.keys() else "no run with vLLM has passed here"


def _agreement(place: Place) -> Facts:
    found = {name: trained(place, name) for name in ("vllm_colocate", "vllm_server") if name in place.earlier}
    if absent := [name for name, facts in found.items() if "vllm/agreement_max" not in facts]:
        raise PathError(f"{', '.join(absent)} logged no vllm/agreement_max: the weights were never compared")
    return {f"largest gap, {name}": facts["vllm/agreement_max"] for name, facts in found.items()}


def _resumed(place: Place) -> list[list[str]]:
    precision = ["trl.bf16=true"] if "bf16" in place.earlier else []
    half = training(place, "resume", *precision)
    whole = [] if precision else [training(place, "whole")]
    return [*whole, [*half, f"trl.max_steps={STEPS // 2}"], [*half, "--resume", "auto"]]


def _other_ways() -> list[AcceptancePath]:
    def exported(place: Place) -> list[list[str]]:
        return [
            [sys.executable, "-m", "evenkeel", "export", str(place.run("lora")), "--to", str(place.run("exported"))]
        ]

    return [
        _simple(
            "fp16",
            "one process, float16 autocast with loss scaling",
            "float16 and its gradient scaler, which no CPU runs",
            "Passed: it trains; that it trains as well as bfloat16 does is not said. Failed: `bf16: true`.",
            "trl.bf16=false",
            "trl.fp16=true",
            gpus=1,
        ),
        _simple("lora", "LoRA on all linear layers", "LoRA's kernels on CUDA", "Failed: its log names the line.", LORA),
        _simple(
            "qlora",
            "LoRA over a base in 4 bits",
            "bitsandbytes' 4-bit kernels",
            "Failed: `model.lora` without `model.quantization`.",
            LORA,
            QLORA,
            packages=("bitsandbytes",),
        ),
        AcceptancePath(
            "export",
            "the LoRA run merged, exported and read back",
            "that what was trained on CUDA is exported and answers",
            "Failed: the checkpoint itself is whole; export it on a CPU.",
            lambda place: "" if "lora" in place.earlier else "there is no LoRA run to export",
            exported,
            lambda place: {"GB": round(sum(f.stat().st_size for f in place.run("exported").iterdir()) / 1e9, 3)},
        ),
    ]


def _same_end(place: Place) -> Facts:
    """On a CPU bit for bit; on a GPU sums may come in another order, and how far apart it is, is said."""
    import torch
    from safetensors.torch import load_file

    whole = "bf16" if "bf16" in place.earlier else "whole"
    one, two = (load_file(place.run(name) / f"checkpoint-{STEPS}" / "model.safetensors") for name in (whole, "resume"))
    gap = max((one[name].float() - two[name].float()).abs().max().item() for name in one)
    if gap and not place.machine.gpus:
        raise PathError(f"the resumed run's weights differ by {gap:.1e} from those of one without a stop")
    trained(place, "resume")
    equal = all(torch.equal(one[name], two[name]) for name in one)
    return {"weights": "equal bit for bit" if equal else f"differ by at most {gap:.1e}"}


def _speed(place: Place) -> Path:
    return place.folder / "benchmark.json"


def _speeds(place: Place) -> Facts:
    results: list[dict[str, Any]] = json.loads(_speed(place).read_text())["results"]
    facts = {}
    for result in results:
        kind = "half of the groups dead" if result["half_dead"] else "no dead groups"
        fastest = max(variant["faster_than_stock"]["median"] for variant in result["variants"].values())
        facts[f"× TRL's update, {kind}"] = round(fastest, 2)
        if stock := result["variants"]["stock"]["peak_bytes"]:
            peak = max(variant["peak_bytes"] for variant in result["variants"].values())
            facts[f"× TRL's peak of memory, {kind}"] = round(peak / stock, 3)
    return facts
