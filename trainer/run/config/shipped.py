"""The run files that ship with the package, by their short names."""

import os
from pathlib import Path

CONFIGS = Path(__file__).parents[3] / "configs"
"""Next to the folder `trainer`, in a checkout and in an installed package."""


def shipped_files() -> dict[str, Path]:
    """Short name → file of every shipped YAML file: ``quickstart``, ``sweeps/laptop``, ``accelerate/ddp``."""
    files = sorted(CONFIGS.rglob("*.yaml"))
    return {path.relative_to(CONFIGS).with_suffix("").as_posix(): path for path in files}


def maker_of(path: str) -> str | None:
    """The command that makes ``path``, a policy or a sweep's runs that shipped files need and that do not ship.

    It is read from the comments of shipped files, with ``--output`` and the path; ``None`` where none has it.
    """
    files = shipped_files()
    match Path(path).parts:
        case ("runs", "sweeps", name, *_) if f"sweeps/{name}" in files:
            return f"evenkeel sweep run sweeps/{name}"
    lines = (line.lstrip("# ") for file in files.values() for line in file.read_text(encoding="utf-8").splitlines())
    return next((line for line in lines if line.startswith("python ") and f" --output {path} " in f"{line} "), None)


def named_file(name: str) -> str:
    """``name`` if it exists, else the shipped file of that short name, else ``name``."""
    if os.path.exists(name):
        return name
    return str(shipped_files().get(name.removesuffix(".yaml"), name))


def named_path(name: str) -> Path:
    """`named_file` as a path."""
    return Path(named_file(name))
