"""A vLLM that TRL drives: whether it is installed, in a version that TRL supports."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

from trainer.run.check.finding import Finding, error
from trainer.run.check.subject import Subject

SUPPORTED = ((0, 22, 0), (0, 31, 0))
"""The versions of vLLM that TRL 1.16 supports, the first and the last; a test reads them in TRL."""


def engine_findings(subject: Subject) -> Iterator[Finding]:
    """vLLM is asked for, and absent or of another version."""
    problem = version_problem(installed_version()) if subject.argument("use_vllm") else None
    if problem is not None:
        yield error("machine", problem)


def installed_version() -> str | None:
    """Of the distribution that the package ``vllm`` comes from; ``None`` where there is none."""
    if find_spec("vllm") is None:
        return None
    names = packages_distributions().get("vllm", ["vllm"])
    try:
        return version("vllm" if "vllm" in names else names[0])
    except PackageNotFoundError:
        return None


def version_problem(found: str | None) -> str | None:
    """What is wrong with this version of vLLM; ``None`` where nothing is."""
    first, last = (".".join(map(str, release)) for release in SUPPORTED)
    install = f"Install the extra: pip install -e '.[vllm]' -c constraints.txt (vLLM {last})"
    if found is None:
        return (
            "trl.use_vllm is true, but vLLM is not installed here; in server mode too the trainer talks to it through "
            f"its package. {install}, or write use_vllm: false."
        )
    release = tuple(map(int, re.findall(r"\d+", found)[:3]))
    if not SUPPORTED[0] <= release <= SUPPORTED[1]:
        return (
            f"vLLM {found} is installed, and TRL 1.16 supports {first} to {last}: others take weights through other "
            f"calls. {install}."
        )
    return None
