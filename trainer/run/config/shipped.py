"""The run files that ship with the package, by their short names."""

from pathlib import Path

CONFIGS = Path(__file__).parents[3] / "configs"
"""In a checkout and in an installed package alike the folder beside `trainer`."""


def shipped_files() -> dict[str, Path]:
    """Short name → file of every shipped YAML file: ``quickstart``, ``sweeps/laptop``, ``accelerate/ddp``."""
    files = sorted(CONFIGS.rglob("*.yaml"))
    return {path.relative_to(CONFIGS).with_suffix("").as_posix(): path for path in files}


def named_file(name: str) -> str:
    """The path of a file that is there, or of the shipped one of that name; else ``name`` as it is."""
    if Path(name).exists():
        return name
    return str(shipped_files().get(name.removesuffix(".yaml"), name))
