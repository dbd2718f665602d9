"""Out of memory: in which phase, which tensors were the largest, and which setting makes that phase smaller."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from trainer.step.faults import FaultError

SHOWN = 5
_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory")
FILE = "out-of-memory.txt"
SAME_EVENT = 120.0
"""Seconds within which another rank's message is about the same."""

KNOBS = {
    "generation": "All completions of a rollout batch are generated together: lower algorithm.prompts_per_rollout or "
    "trl.max_completion_length (is {max_completion_length}), or start more processes; with vLLM in this process lower "
    "trl.vllm_gpu_memory_utilization.",
    "reward functions": "The verifiers and the judged texts share this process's memory: lower "
    "algorithm.prompts_per_rollout, and look at what your own verifier keeps.",
    "scoring of the rollout batch": "So many sequences are scored at once as are trained: lower "
    "trl.per_device_train_batch_size (is {per_device_train_batch_size}) or trl.max_completion_length (is "
    "{max_completion_length}); the optimizer's batch, algorithm.sequences_per_update, stays as it is.",
    "forward and backward pass": "Lower trl.per_device_train_batch_size (is {per_device_train_batch_size}; the "
    "optimizer's batch, algorithm.sequences_per_update, stays as it is), or write speed: {{microbatches: planned, "
    "tokens_per_microbatch: …}}, or trl.gradient_checkpointing: true (is {gradient_checkpointing}).",
    "optimizer step": "The optimizer keeps two numbers a weight beside its gradient: divide them over the GPUs with "
    "configs/accelerate/zero2.yaml, take trl.optim: adamw_8bit (is {optim}), or train an adapter (model.lora).",
    "evaluation": "Lower evaluation.batch_size (is {per_device_eval_batch_size}).",
    "preparation": "The model, a reference model where trl.beta > 0 (is {beta}), and the optimizer must fit together: "
    "configs/accelerate/zero3.yaml divides them over the GPUs, model.lora trains an adapter.",
}
"""Phase → what to write, with the settings in force in place."""


class ExhaustedMemoryError(FaultError):
    """Memory ran out; the message says where and what to turn, and is empty where another rank has said it."""

    of_one_rank = True


@dataclass(frozen=True)
class LargeTensor:
    """One tensor that was alive: the name of a variable that held it where the allocation failed, if one did."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    num_bytes: int

    def __str__(self) -> str:
        size = f"{self.num_bytes / 2**30:.2f} GiB" if self.num_bytes >= 2**28 else f"{self.num_bytes / 2**20:.1f} MiB"
        return f"{self.name} {self.shape} {self.dtype} on {self.device}, {size}"


def is_out_of_memory(error: BaseException) -> bool:
    """Of the GPU (`torch.OutOfMemoryError`), of torch's CPU allocator (a plain RuntimeError), or of Python."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    told = isinstance(error, RuntimeError | OSError) and str(error).lower()
    return bool(told) and any(words in str(told) for words in _WORDS)


def largest_tensors(trace: TracebackType | None, number: int = SHOWN) -> list[LargeTensor]:
    """The largest live tensors, views of one storage counted once, with names from the frames of ``trace``."""
    names: dict[int, str] = {}
    while trace is not None:
        names |= {id(value): name for name, value in trace.tb_frame.f_locals.items() if type(value) is torch.Tensor}
        trace = trace.tb_next
    found: dict[int, LargeTensor] = {}
    for each in gc.get_objects():
        if type(each) not in (torch.Tensor, torch.nn.Parameter) or not each.numel() or each.device.type == "meta":
            continue
        kind = "a weight" if type(each) is torch.nn.Parameter else "a tensor"
        storage = each.untyped_storage()
        tensor = LargeTensor(
            names.get(id(each), kind), tuple(each.shape), str(each.dtype)[6:], str(each.device), storage.nbytes()
        )
        known = found.get(storage.data_ptr())
        if known is None or known.name in ("a tensor", "a weight"):
            found[storage.data_ptr()] = tensor
    return sorted(found.values(), key=lambda tensor: -tensor.num_bytes)[:number]


class MemoryGuard:
    """To be mixed in front of TRL's trainer: `train` ends with `ExhaustedMemoryError` where memory ran out.

    The first rank that fails speaks at once, for the others wait for it: its message goes to ``fault_folder``, which
    all ranks see, and a rank that finds one there is silent.
    """

    fault_folder: Path | None = None
    _doing: str = "preparation"

    def train(self, *positional: Any, **keywords: Any) -> Any:
        try:
            return super().train(*positional, **keywords)  # type: ignore[misc]
        except Exception as error:
            if self.fault_folder is None or not is_out_of_memory(error):
                raise
            raise ExhaustedMemoryError(self._memory_message(error)) from error

    @contextmanager
    def _in_phase(self, phase: str) -> Iterator[None]:
        """An exception leaves the phase as it was: the innermost one is where memory ran out."""
        before, self._doing = self._doing, phase
        yield
        self._doing = before

    def _generate(self, *positional: Any, **keywords: Any) -> Any:
        with self._in_phase("evaluation" if self._doing == "evaluation" else "generation"):
            return super()._generate(*positional, **keywords)  # type: ignore[misc]

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> Any:
        with self._in_phase("reward functions"):
            return super()._calculate_rewards(*positional, **keywords)  # type: ignore[misc]

    def _generate_and_score_completions(self, *positional: Any, **keywords: Any) -> Any:
        with self._in_phase("scoring of the rollout batch"):
            return super()._generate_and_score_completions(*positional, **keywords)  # type: ignore[misc]

    def evaluate(self, *positional: Any, **keywords: Any) -> Any:
        with self._in_phase("evaluation"):
            return super().evaluate(*positional, **keywords)  # type: ignore[misc]

    def training_step(self, *positional: Any, **keywords: Any) -> torch.Tensor:
        with self._in_phase("forward and backward pass"):
            return super().training_step(*positional, **keywords)  # type: ignore[misc]

    def _get_grad_norm(self, *positional: Any, **keywords: Any) -> Any:
        norm = super()._get_grad_norm(*positional, **keywords)  # type: ignore[misc]
        self._doing = "optimizer step"
        return norm

    def _memory_message(self, error: Exception) -> str:
        trainer: Any = self
        settings = {name: getattr(value, "value", value) for name, value in vars(trainer.args).items()}
        tensors = "\n".join(f"  {tensor}" for tensor in largest_tensors(error.__traceback__))
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        text = (
            f"Out of memory in the {self._doing} at optimizer step {trainer.state.global_step + 1} (rank "
            f"{trainer.args.process_index} on {trainer.args.device}): {reason}\n"
            f"The largest tensors alive:\n{tensors}\n{KNOBS[self._doing].format(**settings)}\n"
            "The evaluation's may change on --resume; a run with the others changed starts from the beginning."
        )
        return text if self._is_first_to_say(text) else ""

    def _is_first_to_say(self, text: str) -> bool:
        folder = self.fault_folder or Path()
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / FILE
        if file.exists() and time.time() - file.stat().st_mtime > SAME_EVENT:
            file.unlink(missing_ok=True)  # of an attempt before
        try:
            with file.open("x") as opened:
                opened.write(text + "\n")
        except FileExistsError:
            return False
        return True
