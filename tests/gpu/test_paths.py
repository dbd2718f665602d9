"""Every path that needs a GPU: a few steps of the quickstart in processes of their own, and what must be true of each.

    bash scripts/test.sh -m gpu -n 0 --table
    bash scripts/test.sh -m gpu -n 0 --table -k "zero2 or fsdp2" --model Qwen/Qwen2.5-0.5B-Instruct
    bash scripts/test.sh -m gpu -n 0 --table --cpu     # what can be tried without a GPU

They are what docs/devices.md lists as not known without a GPU. What cannot run here is skipped with the reason.
"""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from tests.paths import ROOT
from tests.standin.cases import POLICY
from tests.trainer.step.test_compact_generation import generated
from tests.trainer.training import max_difference, train
from tests.vllm_cpu.serving import await_answer

pytestmark = pytest.mark.gpu
STEPS = 4
SERVER_PORT = 8791
LORA = "model.lora={r: 8, lora_alpha: 32, target_modules: all-linear}"
QLORA = "model.quantization={load_in_4bit: true}"
VLLM = ("trl.use_vllm=true", "trl.vllm_max_model_length=256", "trl.vllm_gpu_memory_utilization=0.3")
COLOCATED = ("trl.vllm_mode=colocate", "trl.vllm_enable_sleep_mode=true", "algorithm.prompt_sampler=dynamic")
PRODUCT = "algorithm.coefficient={name: dfpo_min_replace, weight: product}"
PATHS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "bf16": (("trl.bf16=true",), 0, ""),
    "rounding": (("algorithm.advantage=dr_grpo", PRODUCT, "trl.loss_type=cispo", "trl.num_iterations=2"), 0, ""),
    "lora": ((LORA,), 0, ""),
    "fp16": (("trl.bf16=false", "trl.fp16=true"), 1, ""),
    "qlora": ((LORA, QLORA), 0, "bitsandbytes"),
    "vllm_colocate": ((*VLLM, *COLOCATED), 1, "vllm"),
}
"""Name → settings of a run on one process, and the GPUs and the package that it takes."""


class Machine:
    """The GPUs that a test may use, and a folder for its runs."""

    def __init__(self, folder: Path, model: str | None, *, cpu: bool) -> None:
        self.folder, self.model = folder, model
        self.gpus = 0 if cpu else torch.cuda.device_count()
        self.bf16 = bool(self.gpus) and torch.cuda.get_device_capability(0) >= (8, 0)

    def needs(self, gpus: int = 0, *packages: str) -> None:
        """Skip where they are not there."""
        if self.gpus < gpus:
            pytest.skip(f"takes {gpus} GPU{'s' if gpus > 1 else ''}, and there are {self.gpus}")
        if absent := [name for name in packages if find_spec(name) is None]:
            pytest.skip(f"not installed: {', '.join(absent)}")

    def run(self, *command: str, gpu: int | None = 0) -> None:
        """A command to its end. It sees one GPU, for with several transformers would share them, or all for None."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
        shown = {} if gpu is None or gpu >= len(visible) else {"CUDA_VISIBLE_DEVICES": visible[gpu]}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "WANDB_MODE": "disabled", **shown}
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    def trained(self, name: str, *settings: str, launch: tuple[str, ...] = (), processes: int = 1) -> Path:
        """The directory of a run of a few steps, which logged finite numbers and a gradient that is not 0."""
        overrides = [
            f"output_dir={self.folder / name}",
            f"num_processes={processes}",
            "algorithm.prompts_per_rollout=4",
            "algorithm.sequences_per_update=32",
            f"trl.per_device_train_batch_size={32 // processes}",
            f"trl.max_steps={STEPS}",
            f"trl.save_steps={STEPS // 2}",
            "trl.max_completion_length=32",
            "data.train.generator.test=16",
            "data.test.generator.test=16",
            "evaluation.before=false",
            "logging.report_to=none",
            f"trl.use_cpu={str(not self.gpus).lower()}",
            f"trl.bf16={str(self.bf16).lower()}",
            *([] if self.model is None else [f"model.name_or_path={self.model}"]),
            *settings,
        ]
        launcher = ["-m", "evenkeel", "launch", *launch] if launch else []
        program = [*launcher, "-m", "evenkeel", "train", "configs/quickstart.yaml", *overrides]
        self.run(*program, gpu=None if launch else 0)
        logged = numbers(self.folder / name, "loss", "grad_norm")
        assert all(map(math.isfinite, logged["loss"] + logged["grad_norm"])), logged
        assert any(logged["grad_norm"]), "every gradient was 0"
        return self.folder / name


def numbers(run: Path, *names: str) -> dict[str, list[float]]:
    """What a run logged under these names, step by step."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {name: [line[name] for line in lines if name in line] for name in names}


@pytest.fixture(scope="module")
def machine(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    found = Machine(tmp_path_factory.mktemp("gpu"), pytestconfig.option.model, cpu=pytestconfig.option.cpu)
    if not found.gpus and not pytestconfig.option.cpu:
        pytest.skip("no CUDA device here; --cpu tries what can be tried without")
    return found


@pytest.mark.parametrize("name", PATHS)
def test_a_run_on_one_process(machine: Machine, name: str, record_property: Callable[[str, object], None]):
    settings, gpus, package = PATHS[name]
    machine.needs(gpus, *filter(None, [package]))
    if name == "bf16" and machine.gpus and not machine.bf16:
        pytest.skip("the GPU does not compute in bfloat16")
    run = machine.trained(name, *settings)
    assert len(numbers(run, "loss")["loss"]) == STEPS
    wanted = {"rounding": ("rounding/log_prob/mean_abs",), "vllm_colocate": ("vllm/agreement_max",)}.get(name, ())
    found = numbers(run, *wanted)
    assert all(found.values()), found
    for column, values in found.items():
        record_property(column, values)
    if name == "lora":
        exported = str(machine.folder / "exported")
        machine.run("-m", "evenkeel", "export", str(run), "--to", exported)
        assert list(Path(exported).glob("*.safetensors"))


def test_a_server_on_the_second_gpu_follows_the_policy(
    machine: Machine, record_property: Callable[[str, object], None]
):
    """TRL's transport of the weights, which takes NCCL between two GPUs."""
    machine.needs(2, "vllm")
    with served(machine.model or str(POLICY)):
        run = machine.trained("server", *VLLM, "trl.vllm_mode=server", f"trl.vllm_server_port={SERVER_PORT}")
    found = numbers(run, "vllm/agreement_max")["vllm/agreement_max"]
    assert found
    record_property("vllm/agreement_max", found)


@contextmanager
def served(model: str) -> Iterator[None]:
    """A vLLM server, answering, on the second GPU."""
    command = [str(Path(sys.executable).with_name("trl")), "vllm-serve", "--model", model, "--port", str(SERVER_PORT)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1").split(",")
    with subprocess.Popen(
        [*command, "--max_model_len", "256", "--gpu_memory_utilization", "0.3"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": visible[1]},
    ) as process:
        try:
            await_answer(f"http://127.0.0.1:{SERVER_PORT}", process)
            yield
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("name", "gpus", "packages", "shards"),
    [("zero2", 0, ("deepspeed",), "global_step*"), ("fsdp2", 1, (), "pytorch_model_fsdp*")],
)
def test_what_is_sharded_trains_on_two_gpus_or_one(
    machine: Machine, name: str, gpus: int, packages: tuple[str, ...], shards: str
):
    machine.needs(gpus, *packages)
    if name == "zero2" and shutil.which("c++") is None:
        pytest.skip("DeepSpeed needs a C++ compiler")
    processes = min(machine.gpus, 2) or 2
    launch = ("--config_file", f"configs/accelerate/{name}.yaml", "--num_processes", str(processes))
    launch = (*launch, "--mixed_precision", "bf16" if machine.bf16 else "no")
    cpu = () if machine.gpus else ("trl.use_cpu=false", "trl.ddp_backend=gloo")
    checkpoint = machine.trained(name, *cpu, launch=launch, processes=processes) / f"checkpoint-{STEPS}"
    assert any(checkpoint.glob(shards)), "something else was trained"
    assert (checkpoint / "model.safetensors").exists()


def test_a_resumed_run_ends_where_one_without_a_stop_does(
    machine: Machine, record_property: Callable[[str, object], None]
):
    """On a CPU bit for bit; on a GPU sums may come in another order, and how far apart it is, is shown."""
    whole = machine.trained("whole")
    machine.trained("resumed", f"trl.max_steps={STEPS // 2}")
    resumed = machine.trained("resumed", "--resume", "auto")
    one, two = (load_file(run / f"checkpoint-{STEPS}" / "model.safetensors") for run in (whole, resumed))
    gap = max((one[name].float() - two[name].float()).abs().max().item() for name in one)
    record_property("largest difference of weights", gap)
    assert machine.gpus or gap == 0


def here(machine: Machine, trainer: type[GRPOTrainer], folder: Path, **keywords: Any) -> GRPOTrainer:
    """Three optimizer steps in this process: in bfloat16 where there is a GPU, in float32 on a CPU."""
    on_gpu = bool(machine.gpus)
    return train(trainer, POLICY, folder, **{"use_cpu": not on_gpu, "bf16": on_gpu, "learning_rate": 1e-4, **keywords})


def test_the_default_is_as_far_from_trl_as_trl_is_from_itself(
    machine: Machine, tmp_path: Path, record_property: Callable[[str, object], None]
):
    stock, again = (here(machine, GRPOTrainer, tmp_path) for _ in range(2))
    gaps = {"itself": max_difference(stock, again), "ours": max_difference(stock, here(machine, RLVRTrainer, tmp_path))}
    for whose, gap in gaps.items():
        record_property(whose, gap)
    assert gaps["ours"] <= 2 * gaps["itself"]


def test_planned_microbatches_have_trls_gradient(machine: Machine, tmp_path: Path):
    """Where the two cuts' gradients differ by more than is allowed, a run warns and falls back to TRL's."""
    batch = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 8, "max_completion_length": 24}
    made = here(machine, RLVRTrainer, tmp_path, strategies={"microbatches": "planned", "verify_steps": 3}, **batch)
    assert made.parts.microbatches.planner is not None


def test_compact_generation_writes_transformers_own_tokens(
    machine: Machine, model: Any, record_property: Callable[[str, object], None]
):
    """In float32. Fewer rows may round otherwise on a GPU, and a completion that differs once differs from there on."""
    on_device = model.to("cuda" if machine.gpus else "cpu")
    plain, compact = (generated(on_device, compact=each) for each in (False, True))
    one, other = pad_sequence([*plain, *compact], batch_first=True, padding_value=-1).chunk(2)
    equal = (one == other).all(1).float().mean().item()
    record_property("share of equal completions", equal)
    assert equal > 0.9 if machine.gpus else equal == 1
