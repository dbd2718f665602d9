"""Which paths are tried, in which order: what later ones look at is made by earlier ones."""

import json
import sys
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
    """All of them."""
    return [*_precisions(), *_adapters(), *_sharding(), *_vllm(), *_afterwards()]


def _simple(name: str, what: str, *settings: str, gpus: int = 0, packages: tuple[str, ...] = ()) -> AcceptancePath:
    return AcceptancePath(
        name,
        what,
        needs(*packages, gpus=gpus),
        lambda place: [training(place, name, *settings)],
        lambda place: trained(place, name),
    )


def _precisions() -> list[AcceptancePath]:
    bf16 = _simple("bf16", "one process, bfloat16 autocast", "trl.bf16=true")

    def missing(place: Place) -> str:
        return "the GPU does not compute in bfloat16" if place.machine.gpus and not place.machine.bf16 else ""

    return [
        AcceptancePath(bf16.name, bf16.what, missing, bf16.commands, bf16.facts),
        _simple("fp16", "one process, float16 autocast with loss scaling", "trl.bf16=false", "trl.fp16=true", gpus=1),
    ]


def _adapters() -> list[AcceptancePath]:
    return [
        _simple("lora", "LoRA on all linear layers", LORA),
        _simple("qlora", "LoRA over a base in 4 bits", LORA, QLORA, packages=("bitsandbytes",)),
    ]


def _sharding() -> list[AcceptancePath]:
    def compiled(place: Place) -> str:
        return needs("deepspeed")(place) or ("" if place.machine.compiler else "DeepSpeed needs a C++ compiler")

    cpu = ("trl.use_cpu=false", "trl.ddp_backend=gloo")
    return [
        AcceptancePath(
            "zero2",
            "DeepSpeed ZeRO-2",
            compiled,
            lambda place: [sharded(place, "zero2", "zero2.yaml", cpu=cpu)],
            lambda place: {**trained(place, "zero2"), **_shards(place, "zero2", "global_step*")},
            one_gpu=False,
        ),
        AcceptancePath(
            "fsdp2",
            "PyTorch FSDP2",
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

    asleep = (*VLLM, "trl.vllm_mode=colocate", "trl.vllm_enable_sleep_mode=true")
    return [
        _simple("vllm_colocate", "vLLM in the trainer's process, asleep during updates", *asleep, gpus=1,
                packages=("vllm",)),
        AcceptancePath(
            "vllm_server",
            "vLLM as a server on the second GPU",
            needs("vllm", gpus=2),
            through_server,
            lambda place: trained(place, "vllm_server"),
            server=server,
        ),
        AcceptancePath("agreement", "vLLM's log-probabilities are the trainer's", _no_vllm, lambda _: [], _agreement),
    ]  # fmt: skip


def _no_vllm(place: Place) -> str:
    return "" if {"vllm_colocate", "vllm_server"} & place.earlier.keys() else "no run with vLLM has passed here"


def _agreement(place: Place) -> Facts:
    found = {name: trained(place, name) for name in ("vllm_colocate", "vllm_server") if name in place.earlier}
    if absent := [name for name, facts in found.items() if "vllm/agreement_max" not in facts]:
        raise PathError(f"{', '.join(absent)} logged no vllm/agreement_max: the weights were never compared")
    return {f"largest gap, {name}": facts["vllm/agreement_max"] for name, facts in found.items()}


def _afterwards() -> list[AcceptancePath]:
    def resumed(place: Place) -> list[list[str]]:
        precision = ["trl.bf16=true"] if "bf16" in place.earlier else []
        half = training(place, "resume", *precision)
        whole = [] if precision else [training(place, "whole")]
        return [*whole, [*half, f"trl.max_steps={STEPS // 2}"], [*half, "--resume", "auto"]]

    def exported(place: Place) -> list[list[str]]:
        return [[sys.executable, "scripts/export.py", str(place.run("lora")), "--to", str(place.run("exported"))]]

    def measured(place: Place) -> list[list[str]]:
        command = [sys.executable, "-m", "scripts.benchmarks", "update"]
        where = ["--size", "gpu", "--device", "cuda"] if place.machine.gpus else []
        return [[*command, "--rounds", "1", *where, "--json", str(_speed(place))]]

    return [
        AcceptancePath(
            "export",
            "the LoRA run merged, exported and read back",
            lambda place: "" if "lora" in place.earlier else "there is no LoRA run to export",
            exported,
            lambda place: {"GB": round(sum(f.stat().st_size for f in place.run("exported").iterdir()) / 1e9, 3)},
        ),
        AcceptancePath(
            "resume", f"stopped after {STEPS // 2} of {STEPS} steps, and gone on", lambda _: "", resumed, _same_end
        ),
        AcceptancePath("benchmark", "the update phase measured, one round", lambda _: "", measured, _speeds),
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
    return facts
