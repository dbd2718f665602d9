"""The rooms depend on one another in one direction only; every import of every file is read."""

import ast
from pathlib import Path

import pytest

from tests.paths import ROOT

ABOVE = {
    "rewards": {"trainer", "scripts"},
    "trainer/algorithms": {"trainer.step", "trainer.run", "trainer.evaluation", "trainer.comparison", "scripts"},
    "trainer/statistics": {"trainer.step", "trainer.run", "trainer.evaluation", "trainer.comparison", "scripts"},
    "trainer/evaluation": {"trainer.step", "trainer.run", "trainer.comparison", "scripts"},
    "trainer/step": {"trainer.run", "trainer.comparison", "scripts"},
    "trainer/run": {"trainer.comparison", "scripts"},
    "trainer/comparison": {"scripts"},
}
"""Room → what lies above it, which it must not import."""
HEAVY = {"torch", "trl", "transformers", "accelerate", "peft", "datasets"}
FILES = sorted(path for folder in ("trainer", "rewards") for path in (ROOT / folder).rglob("*.py"))
STRATEGIES = [path for path in FILES if "algorithms" in path.parts]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it, with all packages above it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_no_room_imports_what_lies_above_it(path: Path):
    rooms = [above for room, above in ABOVE.items() if named(path).startswith(f"{room}/")]
    assert rooms or named(path) == "trainer/__init__.py", "a room that this table does not know"
    for above in rooms:
        assert not imported(path) & above


@pytest.mark.parametrize("path", [path for path in FILES if "rewards" in path.parts], ids=named)
def test_rewards_run_without_torch(path: Path):
    assert not imported(path) & HEAVY


@pytest.mark.parametrize("path", STRATEGIES, ids=named)
def test_the_mathematics_needs_torch_alone(path: Path):
    assert not imported(path) & (HEAVY - {"torch"})


@pytest.mark.parametrize("path", [path for path in FILES if "trainer" in path.parts], ids=named)
def test_the_trainer_takes_of_rewards_its_registry_and_its_contract_alone(path: Path):
    taken = {name for name in imported(path) if name.startswith("rewards.")}
    assert all(name.startswith(("rewards.registry", "rewards.verifier")) for name in taken)


def test_only_one_room_knows_trl():
    importers = {named(path.parent) for path in FILES if "trl" in imported(path)}
    assert importers == {"trainer/step", "trainer/run/config"}
    stock = [path.name for path in FILES if "trl.GRPOTrainer" in imported(path)]
    assert stock == ["counts.py", "engine_agreement.py", "update_benchmark.py"]
