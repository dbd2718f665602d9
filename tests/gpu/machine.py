"""The machine at hand, as far as it decides which paths can run on it."""

import os
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

PACKAGES = ("torch", "trl", "transformers", "accelerate", "peft", "deepspeed", "vllm", "bitsandbytes")


@dataclass(frozen=True)
class Machine:
    """What is there.

    Attributes:
        gpus: their names; empty on a CPU.
        bf16: whether the GPUs compute in bfloat16.
        packages: name → version of those installed.
        compiler: whether a C++ compiler is on the path, which DeepSpeed needs at run time.
    """

    gpus: tuple[str, ...]
    bf16: bool
    packages: dict[str, str]
    compiler: bool

    @property
    def device(self) -> str:
        """What the table calls it."""
        if not self.gpus:
            return f"CPU, {os.cpu_count()} cores"
        return f"{len(self.gpus)} × {self.gpus[0]}"

    def processes(self, most: int = 2) -> int:
        """How many processes a distributed path takes here."""
        return min(len(self.gpus), most) if self.gpus else most


def this_machine(*, cpu: bool) -> Machine:
    """Look, and leave no CUDA context behind: it would take memory from the runs."""
    import torch

    gpus: tuple[str, ...] = ()
    if not cpu:
        gpus = tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    found = {}
    for name in PACKAGES:
        if find_spec(name) is None:
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    supported = bool(gpus) and torch.cuda.get_device_capability(0) >= (8, 0)
    return Machine(gpus, supported, found, shutil.which("c++") is not None)
