"""A process group for the stand-in device that refuses what NCCL cannot do; gloo moves the data.

NCCL takes tensors of its device, contiguous, and as many, of the same shape and type, on every rank; where ranks
disagree it hangs or mixes memory. Here each of these is an error. Object collectives go through device tensors, as with
NCCL.
"""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tests.standin import device

BACKEND = "like_nccl"
_TIMEOUT = timedelta(seconds=60)
_MESSAGE = 240  # bytes that each rank says about its tensors


def install() -> None:
    """Start the process group of this rank of torchrun; accelerate takes the one that it finds."""
    dist.Backend.register_backend(BACKEND, LikeNCCL, devices=[device.NAME])
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(BACKEND, timeout=_TIMEOUT, rank=rank, world_size=count)


class _Finished(dist._Work):
    """A collective that is over when it returns."""

    def __init__(self, result: Any = None) -> None:
        super().__init__()
        self._future: torch.futures.Future[Any] = torch.futures.Future()
        self._future.set_result(result)

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def get_future(self) -> Any:
        return self._future


class LikeNCCL(dist.ProcessGroup):
    """The collectives that DDP, accelerate and torch's object collectives ask for."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(device.NAME)]

    @property
    def pg_name(self) -> str:
        return BACKEND

    group_name = pg_name

    def getBackendName(self) -> str:
        return BACKEND

    name = getBackendName

    def allreduce(self, tensors: Any, options: Any = None) -> _Finished:
        tensors = _listed(tensors)
        asked = dist.AllreduceOptions()
        asked.reduceOp = getattr(options, "reduceOp", dist.ReduceOp.SUM if options is None else options)
        return self._run("all_reduce", tensors, tensors, lambda here, _: self._gloo.allreduce(here, asked))

    def broadcast(self, tensors: Any, options: Any = None) -> _Finished:
        tensors = _listed(tensors)
        asked = dist.BroadcastOptions()
        asked.rootRank, asked.rootTensor = getattr(options, "rootRank", 0), 0
        return self._run("broadcast", tensors, tensors, lambda here, _: self._gloo.broadcast(here, asked))

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], options: Any = None) -> _Finished:
        (output,) = outputs
        return self._run("all_gather", inputs, output, lambda here, there: self._gloo.allgather([there], here))

    def _allgather_base(self, output: Tensor, given: Tensor, options: Any = None) -> _Finished:
        return self._run(
            "all_gather", [given], [output], lambda here, there: self._gloo._allgather_base(there[0], here[0])
        )

    def barrier(self, options: Any = None) -> _Finished:
        self._gloo.barrier().wait()
        return _Finished()

    def _run(
        self,
        name: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        collective: Callable[[list[Tensor], list[Tensor]], Any],
    ) -> _Finished:
        """The collective on copies of the tensors, after all that NCCL needs has been checked."""
        for tensor in (*inputs, *outputs):
            if tensor.device.type != device.NAME:
                raise RuntimeError(f"No backend type associated with device type {tensor.device.type} ({name})")
            if not tensor.is_contiguous():
                raise RuntimeError(f"Tensors must be contiguous ({name} of {tuple(tensor.shape)})")
        self._check_that_ranks_agree(f"{name} of {', '.join(f'{each.dtype} {tuple(each.shape)}' for each in inputs)}")
        in_place = inputs is outputs
        here = [each.detach().cpu() for each in inputs]
        there = here if in_place else [torch.empty_like(each, device="cpu") for each in outputs]
        collective(here, there).wait()
        for target, value in zip(outputs, there, strict=True):
            target.detach().copy_(value)
        return _Finished(list(outputs))

    def _check_that_ranks_agree(self, said: str) -> None:
        own = torch.zeros(_MESSAGE, dtype=torch.uint8)
        text = said.encode()[:_MESSAGE]
        own[: len(text)] = torch.tensor(list(text), dtype=torch.uint8)
        everyones = [torch.empty_like(own) for _ in range(self.size())]
        self._gloo.allgather([everyones], [own]).wait()
        if any(not torch.equal(own, other) for other in everyones):
            texts = [bytes(each.tolist()).rstrip(b"\0").decode(errors="replace") for each in everyones]
            raise RuntimeError(f"the ranks disagree, where NCCL would hang: {' | '.join(texts)}")


def _listed(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)
