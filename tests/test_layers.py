"""The rooms depend on one another in one direction only; every import of every file is read."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.paths import ROOT

_LAB, _RUN, _EVALUATION, _STEP = (f"evenkeel.trainer.{room}" for room in ("lab", "run", "evaluation", "step"))
ABOVE = {
    "rewards": {"evenkeel.trainer", "scripts"},
    "trainer/algorithms": {_STEP, _RUN, _EVALUATION, _LAB, "evenkeel.trainer.command", "scripts"},
    "trainer/evaluation": {_STEP, _RUN, _LAB, "evenkeel.trainer.command", "scripts"},
    "trainer/step": {_RUN, _LAB, "evenkeel.trainer.command", "scripts"},
    "trainer/run": {_LAB, "evenkeel.trainer.command", "scripts"},
    "trainer/lab": {"evenkeel.trainer.command", "scripts"},
    "trainer/lab/statistics": {_STEP, _RUN, "evenkeel.trainer.command", "scripts"},
    "trainer/command": {"scripts"},
    "trainer/public": {"scripts"},
}
"""Room → what lies above it, which it must not import."""
HEAVY = {"torch", "trl", "transformers", "accelerate", "peft", "datasets"}
FILES = sorted(path for folder in ("trainer", "rewards") for path in (ROOT / folder).rglob("*.py"))
STRATEGIES = [path for path in FILES if "algorithms" in path.relative_to(ROOT).parts]
REWARDS = [path for path in FILES if "rewards" in path.relative_to(ROOT).parts]
TRAINER = [path for path in FILES if "trainer" in path.relative_to(ROOT).parts]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imported(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it, with all packages above it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = ("evenkeel", *path.relative_to(ROOT).parts[: -node.level]) if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}


def wrong(files: list[Path], forbidden: Callable[[str, str], bool]) -> dict[str, set[str]]:
    """File → what it imports of which ``forbidden(file, module)`` says that it must not."""
    found = {named(path): {module for module in imported(path) if forbidden(named(path), module)} for path in files}
    return {path: modules for path, modules in found.items() if modules}


def test_every_room_is_in_the_table():
    rooms = tuple(f"{room}/" for room in ABOVE)
    assert [named(path) for path in FILES if not named(path).startswith(rooms)] == ["trainer/__init__.py"]


def test_no_room_imports_what_lies_above_it():
    def lies_above(path: str, module: str) -> bool:
        return any(module in above for room, above in ABOVE.items() if path.startswith(f"{room}/"))

    assert wrong(FILES, lies_above) == {}


def test_rewards_run_without_torch():
    assert wrong(REWARDS, lambda _, module: module in HEAVY) == {}


def test_the_mathematics_needs_torch_alone():
    assert wrong(STRATEGIES, lambda _, module: module in HEAVY - {"torch"}) == {}


def test_below_a_run_the_trainer_takes_of_rewards_its_registry_and_its_contract_alone():
    taken = ("evenkeel.rewards.registry", "evenkeel.rewards.verifier")
    below = [path for path in TRAINER if path.relative_to(ROOT).parts[1] not in ("run", "command", "public")]
    found = wrong(below, lambda _, module: module.startswith("evenkeel.rewards.") and not module.startswith(taken))
    assert found == {}


def test_only_one_room_knows_trl():
    importers = {named(path.parent) for path in FILES if "trl" in imported(path)}
    assert importers == {"trainer/step", "trainer/run/config"}
    stock = [path.name for path in FILES if "trl.GRPOTrainer" in imported(path)]
    assert stock == ["trainer.py"]
