"""The rooms depend on one another in one direction only: rewards ← scripts → trainer, and one file knows TRL."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PURE = ["advantages", "token_weights", "update_schedules", "sequence_weights", "diagnostics"]


def imported(path: Path) -> set[str]:
    """Every package and first submodule that the file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names | {name.partition(".")[0] for name in names}


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("path", files("rewards"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rewards_need_neither_torch_nor_a_trainer(path: Path):
    assert not imported(path) & {"torch", "trl", "transformers", "accelerate", "datasets", "trainer", "scripts"}


@pytest.mark.parametrize("path", files("trainer"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_trainer_never_imports_rewards_or_scripts(path: Path):
    assert not imported(path) & {"rewards", "scripts"}


@pytest.mark.parametrize("name", PURE)
def test_the_mathematics_needs_torch_alone(name: str):
    outside = {package for package in imported(ROOT / "trainer" / f"{name}.py") if "." not in package}
    assert outside <= {"torch", "jaxtyping", "typing", "collections", "dataclasses", "functools"}


def test_one_file_subclasses_trl():
    importers = {
        path.relative_to(ROOT).as_posix() for path in files("trainer") if "trl.trainer.utils" in imported(path)
    }
    assert importers == {"trainer/rlvr_trainer.py"}
