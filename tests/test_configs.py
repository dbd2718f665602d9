"""Every run configuration that ships is loaded and checked as a launch would, and its header says what it owes."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from accelerate.commands.launch import launch_command_parser

from evenkeel.rewards import build_verifier
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.command import TRANSLATED
from evenkeel.trainer.command.translation import translated
from evenkeel.trainer.lab.sweeps.cells import Cell, cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.run.config import evaluation_arguments, grpo_config, load_config
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.schedule import check_arguments
from evenkeel.trainer.step.compatibility import check_combination
from tests.paths import ROOT

CONFIGS = ROOT / "configs"
NO_RUNS = ("accelerate", "claims", "evaluation", "sweeps")  # these have tests of their own
RUNS = sorted(path for path in CONFIGS.rglob("*.yaml") if path.relative_to(CONFIGS).parts[0] not in NO_RUNS)
WITH_HEADER = sorted(path for path in CONFIGS.rglob("*.yaml") if path.relative_to(CONFIGS).parts[0] != "accelerate")
BASES = (CONFIGS / "countdown" / "baseline.yaml", CONFIGS / "knights_knaves" / "grpo_3b.yaml")
BASE_OF = {path: load_config(path) for path in BASES}
README = (CONFIGS / "README.md").read_text()


def variants() -> list[tuple[str, Path, list[str]]]:
    """Name, base file and overrides of every place in the README's table of variants that is no file and not empty."""
    found = []
    table = README.partition("| variant | of `countdown/baseline.yaml` |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        name, *places = (cell.strip() for cell in line.split(" | ")[:3])
        for base, place in zip(BASES, (places[0], places[0] if places[1] == "the same" else places[1]), strict=True):
            if place.startswith("`"):
                found.append((name.removeprefix("| "), base, shlex.split(place.strip("`"))))
    return found


def test_there_are_configs():
    assert len(RUNS) >= 12
    assert len(variants()) >= 70
    assert ("rloo", BASES[1], ["algorithm.advantage=rloo"]) in variants()


def test_every_variant_is_in_the_table_or_a_file_that_it_names():
    files = {path.stem for path in (CONFIGS / "countdown").glob("*.yaml")} - {"baseline", "ibpo_tiny_cpu"}
    assert not files & {name for name, _, _ in variants()}
    assert not [name for name in files if f"`{name}`" not in README]
    for path in (CONFIGS / "knights_knaves" / "variants_3b").glob("*.yaml"):
        assert f"`{path.stem}`*" in README or f"](knights_knaves/variants_3b/{path.name})" in README, path.name
    assert not [link for link in re.findall(r"\]\((knights_knaves/[^)]+)\)", README) if not (CONFIGS / link).exists()]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_config_passes_every_check_that_needs_no_gpu(path: Path):
    passes_every_check(path, [])


@pytest.mark.parametrize(
    ("path", "overrides"),
    [each[1:] for each in variants()],
    ids=[f"{base.stem}-{name}" for name, base, _ in variants()],
)
def test_a_variant_of_the_table_passes_every_check_that_needs_no_gpu(path: Path, overrides: list[str]):
    assert load_config(path, overrides) != BASE_OF[path]
    passes_every_check(path, overrides)


SWEEPS = [load_sweep(path)[0] for path in sorted(CONFIGS.glob("sweeps/low_probability_*.yaml"))]
ROWS = [(Path(sweep.config), cell) for sweep in SWEEPS for cell in cells_of(sweep) if cell.seed == 0]


@pytest.mark.parametrize(("path", "cell"), ROWS, ids=lambda each: each.name)
def test_a_row_of_a_papers_sweep_passes_every_check_that_needs_no_gpu(path: Path, cell: Cell):
    passes_every_check(path, cell.overrides)


def passes_every_check(path: Path, overrides: list[str]) -> None:
    config = load_config(path, [*overrides, "trl.bf16=false", "trl.use_cpu=true"])
    for reward in config.rewards:
        build_verifier(reward.verifier)
    strategies = build_strategies(**config.algorithm.strategies)
    args = grpo_config(config, config.num_processes or 1)
    check_combination(args, strategies)
    check_arguments(args, strategies.schedule.num_passes)


def run_of(command: str, *given: str) -> Path | None:
    """The file that a command runs, by the command's own parser."""
    made = import_module(f"evenkeel.trainer.command.{command}").parser
    arguments = translated(command, given, made) if command in TRANSLATED else given
    if command == "launch":
        return named_path(launch_command_parser().parse_args([*arguments]).training_script)
    parser = made()
    is_group = command in ("sweep", "configs")
    parsed = parser.parse_args(arguments) if is_group else parser.parse_intermixed_args(arguments)
    found = getattr(parsed, "file" if command in ("sweep", "claim") else "config", None)
    return found and Path(found)


@pytest.mark.parametrize("path", WITH_HEADER, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_header_has_command_hardware_and_expectation(path: Path):
    header = path.read_text().split("\n\n")[0]
    commands = re.findall(r"^#     evenkeel (.+)$", re.sub(r" \\\n# +", " ", header), flags=re.MULTILINE)
    assert path in [run_of(*shlex.split(command, comments=True)) for command in commands]
    assert "Hardware" in header
    assert "Expected" in header
    if "run.schema.json" in header and path.parent.name != "evaluation":
        (curve,) = re.findall(r"^# Curve: (.+)\.$", header, flags=re.MULTILINE)
        assert curve == "none" or (ROOT / curve).is_file()


@pytest.mark.parametrize("path", sorted((CONFIGS / "evaluation").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_evaluation_passes_every_check_that_needs_no_data(path: Path, tmp_path: Path):
    config = load_config(path, ["model.name_or_path=x"], evaluation_only=True)
    for reward in config.rewards:
        build_verifier(reward.verifier)
    assert evaluation_arguments(config, str(tmp_path)).max_completion_length >= 1024
    assert config.evaluation.samples or config.evaluation.greedy
