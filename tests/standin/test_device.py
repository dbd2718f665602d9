"""The stand-in device refuses what CUDA refuses, allows what CUDA allows, and notes where the host would wait."""

import ctypes
import faulthandler
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.standin import device

pytestmark = pytest.mark.standin

Try = Callable[[Tensor, Tensor], Any]
REFUSED: dict[str, Try] = {
    "sum of a device tensor and a CPU tensor": lambda there, here: there + here,
    "matrix product": lambda there, here: there.view(1, -1) @ here.view(-1, 1),
    "concatenation": lambda there, here: torch.cat([there, here]),
    "stack with a CPU number": lambda there, here: torch.stack([there[0], here[0]]),
    "choice by `where`": lambda there, here: torch.where(there > 0, there, here),
    "comparison": lambda there, here: there == here,
    "CPU mask of a fill": lambda there, here: there.masked_fill(here > 0, 0.0),
    "CPU index of `index_select`": lambda there, here: there.index_select(0, torch.tensor([0])),
    "CPU index of `gather`": lambda there, here: there.gather(0, torch.tensor([0])),
    "CPU bound of `clamp`": lambda there, here: there.clamp(min=torch.tensor(0.5)),
    "CPU values put at an index": lambda there, here: there.index_put((torch.tensor([0]).to(there.device),), here[:1]),
    "device index into a CPU tensor": lambda there, here: here[torch.tensor([0], device=there.device)],
    "numpy()": lambda there, here: there.numpy(),
    "CPU generator for numbers of the device": lambda there, here: torch.randn(
        2, device=there.device, generator=torch.Generator()
    ),
    "device generator for numbers of the CPU": lambda there, here: here.normal_(
        generator=torch.Generator(there.device)
    ),
    "pinned memory on the device": lambda there, here: torch.empty(2, device=there.device, pin_memory=True),
}
ALLOWED: dict[str, Try] = {
    "CPU number in a sum": lambda there, here: there + torch.tensor(1.0),
    "CPU number in `where`": lambda there, here: torch.where(there > 0, there, torch.tensor(1.0)),
    "CPU index in brackets": lambda there, here: there[torch.tensor([0])],
    "CPU number put at an index": lambda there, here: there.index_put((torch.tensor([0]),), torch.tensor(1.0)),
    "assignment of a CPU tensor to a slice": lambda there, here: there.__setitem__(slice(1), here[:1]),
}
WAITS: dict[str, Try] = {
    "item()": lambda there, here: there[0].item(),
    "bool()": lambda there, here: bool(there[0]),
    "tolist()": lambda there, here: there.tolist(),
    "cpu()": lambda there, here: there.cpu(),
    "copy of CPU memory": lambda there, here: here.to(there.device),
    "torch.tensor of numbers": lambda there, here: torch.tensor([1.0], device=there.device),
    "nonzero()": lambda there, here: there.nonzero(),
    "index by a mask": lambda there, here: there[there > 0],
    "unique()": lambda there, here: there.unique(),
    "bincount()": lambda there, here: there.long().bincount(),
    "equal()": lambda there, here: torch.equal(there, there),
}
NO_WAIT: dict[str, Try] = {
    "arithmetic": lambda there, here: (there * 2).softmax(0).sum(),
    "where": lambda there, here: torch.where(there > 0, there, 0.0),
    "new_zeros()": lambda there, here: there.new_zeros(3),
    "copy of CPU memory, not blocking": lambda there, here: here.to(there.device, non_blocking=True),
    "random numbers": lambda there, here: torch.rand_like(there),
}


@pytest.fixture
def pair() -> tuple[Tensor, Tensor]:
    """Three ones on the device, and on the CPU."""
    return torch.ones(3, device=device.NAME), torch.ones(3)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_on_cuda(name: str, pair):
    with pytest.raises((RuntimeError, TypeError), match=r"same device|can't convert|generator|indices should|pinned"):
        REFUSED[name](*pair)


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_as_on_cuda(name: str, pair):
    ALLOWED[name](*pair)


@pytest.mark.parametrize(("name", "waits"), [*((name, 1) for name in WAITS), *((name, 0) for name in NO_WAIT)])
def test_waits_are_noted(name: str, waits: int, pair):
    noted: list[str] = []
    native = device.install()
    native.on_host_wait(noted.append)
    try:
        ({**WAITS, **NO_WAIT})[name](*pair)
    finally:
        native.on_host_wait(None)
    assert len(noted) == waits, noted


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_cpu_code_that_reads_its_memory_dies(pair):
    there, _ = pair
    if (child := os.fork()) == 0:
        faulthandler.disable()  # pytest's, which would print all threads
        ctypes.string_at(there.data_ptr(), 4)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV
