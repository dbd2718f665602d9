"""Packages, files and devices that a configuration asks for and this environment lacks."""

import os
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from evenkeel.trainer.run.check.context import CheckContext, Finding, error, note, warning
from evenkeel.trainer.run.config.trackers import TRACKERS


def package_findings(context: CheckContext) -> Iterator[Finding]:
    """DeepSpeed and trackers that are not installed, and a file of DeepSpeed's that is not there."""
    deepspeed = context.argument("deepspeed")
    if deepspeed and find_spec("deepspeed") is None:
        what = "trl.deepspeed needs deepspeed, which is not installed"
        yield error("machine", "package-not-installed", f'{what}: pip install -e ".[deepspeed]".')
    yield from _trackers(context.config.logging.report_to)
    if isinstance(deepspeed, str) and not Path(deepspeed).is_file():
        yield error(
            "trl", "no-deepspeed-file", f"trl.deepspeed = {deepspeed!r}: there is no such file. Check the path."
        )


def _trackers(asked: Sequence[str]) -> Iterator[Finding]:
    """Trackers that have no package here, or no server; and what a run sets for them, so that they stay local."""
    for name in asked if isinstance(asked, list) else ():
        needs, place = TRACKERS[name], f"logging.report_to names {name}"
        install = f"pip install {next(iter(needs.modules.values()), name)}; or leave it out."
        if needs.modules and not any(find_spec(module) for module in needs.modules):
            yield error("machine", "tracker-not-installed", f"{place}, whose package is not installed: {install}")
        elif needs.below and tuple(map(int, re.findall(r"\d+", have := version(name))[:2])) >= needs.below:
            what = f"{place}, and its version {have} is not one that transformers' callback can write to"
            yield error("machine", "tracker-version", f"{what}: {install}")
        if needs.variable and not os.environ.get(needs.variable):
            what = f"{place}, and {needs.variable} is not set, so that there is no server to write to."
            yield error("machine", "tracker-without-server", f"{what} Set it, or leave {name} out.")
        for variable, value in needs.local.items():
            if os.environ.get(variable, value) == value:
                yield note(
                    "logging",
                    "tracker-variable",
                    f"{place}: it runs with {variable}={value}. Set {variable} yourself to have another.",
                )


def device_findings(context: CheckContext) -> Iterator[Finding]:
    """A GPU that is asked for and not there; bf16 that the CPU computes slowly; fp16, which nobody has measured."""
    import torch

    if context.config.trl.get("fp16") and not context.argument("use_cpu"):
        yield note(
            "trl",
            "fp16-unmeasured",
            "trl.fp16 is true. No run of this trainer has been measured in float16: its gradient scaler leaves out "
            "steps whose gradient overflows, and what is said of faults, resume and planned micro-batches was measured "
            "in float32 and bfloat16. Write bf16: true where the GPU has it (Ampere and later).",
        )

    if not context.argument("use_cpu") and not torch.cuda.is_available():
        yield warning(
            "machine",
            "no-gpu",
            "This machine has no GPU that torch can use, and trl.use_cpu is not set: here TRL would refuse bf16 or "
            "train on the CPU. What depends on the device was checked as far as it can be without one.",
        )
    elif context.argument("use_cpu") and context.config.trl.get("bf16") is None and not context.argument("fp16"):
        yield note(
            "trl",
            "bf16-on-cpu",
            "trl.bf16 is not set, and TRL's default is bf16 also on a CPU, where it is slow and less exact. Write "
            "bf16: false.",
        )


SUPPORTED = ((0, 22, 0), (0, 31, 0))
"""The versions of vLLM that TRL 1.16 supports, the first and the last; a test reads them in TRL."""


def engine_findings(context: CheckContext) -> Iterator[Finding]:
    """vLLM is asked for, and absent or of another version."""
    problem = version_problem(installed_version()) if context.argument("use_vllm") else None
    if problem is not None:
        yield error("machine", *problem)


def installed_version() -> str | None:
    """Of the distribution that the package ``vllm`` comes from; ``None`` where there is none."""
    if find_spec("vllm") is None:
        return None
    names = packages_distributions().get("vllm", ["vllm"])
    try:
        return version("vllm" if "vllm" in names else names[0])
    except PackageNotFoundError:
        return None


def version_problem(found: str | None) -> tuple[str, str] | None:
    """What is wrong with this version of vLLM, code and sentence; ``None`` where nothing is."""
    first, last = (".".join(map(str, release)) for release in SUPPORTED)
    install = f"Install the extra: pip install -e '.[vllm]' -c constraints.txt (vLLM {last})"
    if found is None:
        return (
            "vllm-not-installed",
            "trl.use_vllm is true, but vLLM is not installed here; in server mode too the trainer talks to it through "
            f"its package. {install}, or write use_vllm: false.",
        )
    release = tuple(map(int, re.findall(r"\d+", found)[:3]))
    if not SUPPORTED[0] <= release <= SUPPORTED[1]:
        return (
            "vllm-version",
            f"vLLM {found} is installed, and TRL 1.16 supports {first} to {last}: others take weights through other "
            f"calls. {install}.",
        )
    return None
