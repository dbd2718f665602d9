"""Packages and files that a configuration asks for and this environment lacks."""

import os
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from trainer.run.check.finding import Finding, error, note, warning
from trainer.run.check.subject import Subject
from trainer.run.config.trackers import TRACKERS

_OPTIMIZERS = (("8bit|4bit|_bnb|paged", "bitsandbytes"), ("galore", "galore_torch"), ("apollo", "apollo_torch"))
_INSTALL = {"deepspeed": 'pip install -e ".[deepspeed]"'}


def package_findings(subject: Subject) -> Iterator[Finding]:
    """What is asked for and not installed; files of DeepSpeed's that are not there."""
    for asked, module, package in _wanted(subject):
        if find_spec(module) is None:
            instead = _INSTALL.get(module, f"pip install {package}")
            yield error("machine", f"{asked} needs {package} ({module}), which is not installed: {instead}.")
    yield from _trackers(subject.config.logging.report_to)
    deepspeed = subject.argument("deepspeed")
    if isinstance(deepspeed, str) and not Path(deepspeed).is_file():
        yield error("trl", f"trl.deepspeed = {deepspeed!r}: there is no such file. Check the path.")
    mode = subject.config.trl.get("vllm_mode")
    if mode is not None and not subject.argument("use_vllm"):
        yield warning("trl", f"trl.vllm_mode = {mode!r} does nothing without use_vllm: true. Write both, or neither.")


def _trackers(asked: Sequence[str]) -> Iterator[Finding]:
    """Trackers that have no package here, or no server; and what a run sets for them, so that they stay local."""
    for name in asked if isinstance(asked, list) else ():
        needs, place = TRACKERS[name], f"logging.report_to names {name}"
        install = f"pip install {next(iter(needs.modules.values()), name)}; or leave it out."
        if needs.modules and not any(find_spec(module) for module in needs.modules):
            yield error("machine", f"{place}, whose package is not installed: {install}")
        elif needs.below and tuple(map(int, re.findall(r"\d+", have := version(name))[:2])) >= needs.below:
            what = f"{place}, and its version {have} is not one that transformers' callback can write to"
            yield error("machine", f"{what}: {install}")
        if needs.variable and not os.environ.get(needs.variable):
            what = f"{place}, and {needs.variable} is not set, so that there is no server to write to."
            yield error("machine", f"{what} Set it, or leave {name} out.")
        for variable, value in needs.local.items():
            if os.environ.get(variable, value) == value:
                yield note(
                    "logging", f"{place}: it runs with {variable}={value}. Set {variable} yourself to have another."
                )


def _wanted(subject: Subject) -> Iterator[tuple[str, str, str]]:
    """What asks, the module, the package."""
    if subject.argument("deepspeed"):
        yield "trl.deepspeed", "deepspeed", "deepspeed"
    if subject.argument("use_liger_kernel"):
        yield "trl.use_liger_kernel", "liger_kernel", "liger-kernel"
    optimizer = str(subject.argument("optim"))
    for pattern, module in _OPTIMIZERS:
        if re.search(pattern, optimizer):
            yield f"trl.optim = {optimizer!r}", module, module.replace("_", "-")
            break
    attention = subject.config.model.attn_implementation
    if attention in ("flash_attention_2", "flash_attention_3"):
        module = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_3"}[attention]
        yield f"model.attn_implementation = {attention!r}", module, module.replace("_", "-")


def device_findings(subject: Subject) -> Iterator[Finding]:
    """A GPU that is asked for and not there; bf16 that the CPU computes slowly."""
    import torch

    if not subject.argument("use_cpu") and not torch.cuda.is_available():
        yield warning(
            "machine",
            "This machine has no GPU that torch can use, and trl.use_cpu is not set: here TRL would refuse bf16 or "
            "train on the CPU. What depends on the device was checked as far as it can be without one.",
        )
    elif subject.argument("use_cpu") and subject.config.trl.get("bf16") is None and not subject.argument("fp16"):
        yield note(
            "trl",
            "trl.bf16 is not set, and TRL's default is bf16 also on a CPU, where it is slow and less exact. Write "
            "bf16: false.",
        )
