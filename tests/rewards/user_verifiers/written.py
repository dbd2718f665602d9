"""Verifiers as users write them, well and badly."""

import asyncio
import contextlib
import ctypes
import os
import pickle
import re
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.rewards import Verdict, Verifier
from evenkeel.rewards.user_verifiers import traits


def last_word(completion: str, reference: Any, *, returns: str = "verdict") -> Any:
    right = completion.split()[-1:] == [reference]
    kinds = {"float": float, "int": int, "bool": bool, "numpy": np.bool_, "text": str}
    if returns in kinds:
        return kinds[returns](right)
    if returns in ("verdict", "score of numpy"):
        return Verdict(float(right) if returns == "verdict" else np.float32(right), None, "the last word")  # type: ignore[arg-type]
    return {"None": None, "tuple": (right, "why"), "nan": float("nan"), "everything": 1.0}[returns]


def as_named(completion: str, reference: Any) -> Any:
    """As `last_word`; the completion says what it returns."""
    returns, _, words = completion.partition(": ")
    return last_word(words, reference, returns=returns)


@traits(timeout_s=3.0)
def misbehaving(completion: str, reference: Any) -> float:
    """Does what the completion says."""
    if completion == "exit":
        sys.exit(3)
    if completion == "raise":
        raise LookupError("no such row")
    if completion == "crash":
        ctypes.string_at(0)
    if completion.startswith("leave"):
        os._exit(int(completion[-1]))
    if completion == "sleep":
        time.sleep(30)
    if completion == "hold":
        re.match(r"(a|a)*$", "a" * 64 + "b")  # holds the interpreter for years
    return float(completion == reference)


@traits(timeout_s=3.0)
def of_trl(completions: Any, solution: Any, log_extra: Any, scale: float = 1.0, **given: Any) -> list[float | None]:
    """With TRL's signature; does what a completion says."""
    texts = [completion if isinstance(completion, str) else completion[0]["content"] for completion in completions]
    log_extra("reason", [f"process {os.getpid()}, level {level}" for level in given.get("level", texts)])
    given["log_metric"]("mine/step", given["trainer_state"].global_step)
    pairs = zip(texts, solution, strict=True)
    return [None if text == "none" else scale * misbehaving(text, gold) for text, gold in pairs][texts.count("short") :]


async def meets(completions: Any, folder: str, file: str, **more: Any) -> list[float]:
    """Returns once another function has made its file too."""
    Path(folder, file).touch()
    while len(os.listdir(folder)) < 2:  # noqa: PTH208
        await asyncio.sleep(0.01)
    return [1.0] * len(completions)


nameless = traits(timeout_s=1.0)(lambda completion, reference: misbehaving(completion, reference))


exits, leaves = (lambda completion, reference: sys.exit("bye")), (lambda completion, reference: os._exit(0))


class WithClient(Verifier):
    """It holds what cannot be sent to another process."""

    def __init__(self, right: str = "a") -> None:
        self.right, self.lock = right, threading.Lock()

    def __call__(self, completion: str, reference: Any) -> Verdict:
        return Verdict(float(completion == self.right), None, f"process {os.getpid()}")

    def gold_completion(self, reference: Any) -> str | None:
        return self.right


with_client = WithClient()


class _MakesFile:
    """When it is unpickled."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return open, (self.file, "w")


def taken_over(completion: str, reference: Any, *, file: str) -> float:
    """Writes a pickle into every channel of its process."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith(("socket:", "pipe:")) and int(name) > 2:  # noqa: PTH115
                os.write(int(name), pickle.dumps(_MakesFile(file)) + b"\n")
    return 1.0


@traits(reads_reference=False, timeout_s=float("inf"))
def short(completion: str, reference: Any) -> float:
    return float(len(completion) < 10**6)


@traits(timeout_s=1.0)
def sleeps(completion: str, reference: Any) -> None:
    time.sleep(10)


def with_alarm(completion: str, reference: Any) -> bool:
    signal.signal(signal.SIGALRM, lambda *_: None)
    return completion == reference


@dataclass(frozen=True)
class Batches(Verifier):
    """Judges batches itself, and some of them wrongly."""

    missing: int = 0

    def __call__(self, completion: str, reference: Any) -> Verdict:
        return Verdict(float(completion == reference), None, f"process {os.getpid()}")

    def judge_all(self, completions: Any, references: Any) -> list[Verdict]:
        return [self(*row) for row in zip(completions, references, strict=True)][self.missing :]
