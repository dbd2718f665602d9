"""The table of gates, and how the rows are measured that run tests and scripts which exist for themselves."""

import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.gates.gate import (
    EXACTLY,
    NO_FEWER,
    NO_OTHERS,
    SHOWN,
    Gate,
    Measured,
    NotRunError,
    Options,
    at_least,
    at_most,
    near,
    no_lower,
    run,
)
from tests.paths import ROOT

MINUTE = 60.0
ROUNDS = 8
"""Of the benchmark; the tokens that it prints are those of the last one."""


def passing(*arguments: str, seconds: float, **environment: str) -> Any:
    """A gate's measurement: these pytest arguments; a test that is skipped was not run."""

    def measure(options: Options) -> Measured:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-n", "0", f"--junitxml={report}", *arguments]
            ended = run(command, seconds=seconds, **environment)
            if not report.exists():
                raise RuntimeError(f"status {ended.returncode}: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")
            cases = [*ElementTree.parse(report).iter("testcase")]
        outcomes = {"failure": 0, "error": 0, "skipped": 0}
        wrong = []
        for case in cases:
            for kind in outcomes:
                for found in case.findall(kind):
                    outcomes[kind] += 1
                    wrong.append(f"{kind}: {case.get('name')}: {(found.get('message') or '').splitlines()[:1]}")
        passed = len(cases) - sum(outcomes.values())
        if wrong:
            kept = ROOT / "runs" / "gates" / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.log"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")
            wrong.append(f"all that pytest said: {kept.relative_to(ROOT)}")
        return Measured({"tests passed": passed, "failed": outcomes["failure"] + outcomes["error"]}, wrong)

    return measure


TESTS = {"tests passed": NO_FEWER, "failed": at_most(0)}


def equality(*, quick: bool) -> Any:
    def measure(options: Options) -> Measured:
        from tests.gates.equality import QUICK, SETTINGS, all_compared

        pairs = [(setting, options.trainer) for setting in (QUICK if quick else SETTINGS)]
        results = all_compared(pairs, jobs=options.jobs, say=options.say)
        controls = [each.sound for each in results if each.sound is not None]
        values = {
            "settings": len(results),
            "equal to the bit": sum(each.equal for each in results),
            "largest difference of gradients": max(each.gradients for each in results),
            "largest difference of weights": max(each.weights for each in results),
            "largest difference of a log": max(each.logs for each in results),
            "least that stock moved": min(each.moved for each in results),
            "stock against stock": f"{sum(controls)} of {len(controls)} equal",
        }
        return Measured(values, [f"{each.name}: {'; '.join(each.wrong)}" for each in results if not each.equal])

    return measure


EQUALITY = {
    "settings": EXACTLY,
    "equal to the bit": NO_FEWER,
    "largest difference": at_most(0.0),
    "least that stock moved": at_least(1e-3),
    "stock against stock": EXACTLY,
}


def planned_gradient(options: Options) -> Measured:
    from tests.gates.equality import class_of
    from tests.gates.gradients import planned_beside_trl

    found = planned_beside_trl(trainer=class_of(options.trainer), say=options.say)
    worst = max(found, key=lambda name: found[name][0])
    values = {
        "settings": len(found),
        "largest difference, of its size": found[worst][0],
        "most tokens, of TRL's": round(max(share for _, share in found.values()), 3),
        "fewest tokens, of TRL's": round(min(share for _, share in found.values()), 3),
    }
    return Measured(values)


def residuals(options: Options) -> Measured:
    from tests.gates.equality import class_of
    from tests.gates.gradients import all_cancelled

    found = all_cancelled(trainer=class_of(options.trainer), say=options.say)
    kept = [pair for name, pair in found.items() if not name.startswith("scattered")]
    scattered = [pair for name, pair in found.items() if name.startswith("scattered")]
    values = {
        "trainings": len(found),
        "largest residual": max(measured for measured, _ in kept),
        "largest residual as logged": max(logged for _, logged in kept),
        "least residual, groups scattered": min(measured for measured, _ in scattered),
    }
    return Measured(values)


def quickstart(options: Options) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evenkeel", "train", "configs/quickstart.yaml", f"output_dir={folder}/run"]
        ended = run(command, seconds=60 * MINUTE, OMP_NUM_THREADS="2")
        if ended.returncode != 0:
            raise RuntimeError(f"status {ended.returncode}: {ended.stderr[-1500:]}")
        summary = json.loads((Path(folder) / "run" / "summary.json").read_text())
    values = {
        "held-out accuracy before": round(summary["accuracy_before"], 3),
        "held-out accuracy after": round(summary["accuracy_after"], 3),
        "optimizer steps": summary["optimizer_steps"],
    }
    return Measured(values)


def benchmark(options: Options) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "speed.json"
        command = [sys.executable, "-m", "scripts.benchmarks.update", "--rounds", str(ROUNDS)]
        command += ["--json", str(output)]
        ended = run(command, seconds=90 * MINUTE, OMP_NUM_THREADS="2")
        if ended.returncode != 0:
            raise RuntimeError(f"status {ended.returncode}: {ended.stderr[-1500:]}")
        results = json.loads(output.read_text())["results"]
    values: dict[str, Any] = {}
    wrong = []
    for result in results:
        batch = "half dead" if result["half_dead"] else "none dead"
        wrong += [f"{batch}: {name} fell back to TRL's micro-batches" for name in result["fell_back"]]
        for name, measured in result["variants"].items():
            values[f"tokens, {batch}, {name}"] = measured["tokens"]
            if name != "stock":
                values[f"times stock, {batch}, {name}"] = round(measured["faster_than_stock"]["median"], 2)
    return Measured(values, wrong)


def trl_tests(options: Options) -> Measured:
    """TRL's tests/test_grpo_trainer.py in the folder ``TRL_TESTS``; README.md says what has to be in it."""
    if not (given := os.environ.get("TRL_TESTS")):
        raise NotRunError("TRL_TESTS is not set: it names a folder prepared for TRL's tests; see tests/gates/README.md")
    folder = Path(given).resolve()
    parts = ("run.py", "baseline.json", "venv/bin/python", "trlrepo/tests/test_grpo_trainer.py")
    harness, stock, python, tests = (folder / part for part in parts)
    if missing := [part for part in parts if not (folder / part).exists()]:
        raise NotRunError(f"TRL_TESTS={given} lacks {', '.join(missing)}; see tests/gates/README.md")
    with tempfile.TemporaryDirectory() as temporary:
        output = Path(temporary) / "outcomes.json"
        command = [str(python), str(harness), "--trainer", options.trainer, "--path", str(ROOT / ".package"), "--tests"]
        command += [str(tests)]
        command += ["--timeout", "900", "--workers", str(min(options.jobs, 2)), "--json", str(output)]
        ended = run(command, seconds=180 * MINUTE)
        if not output.exists():
            raise RuntimeError(f"status {ended.returncode}: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")
        passed = _passed(output)
    by_stock = _passed(stock)
    values = {
        "passed by stock": len(by_stock),
        "passed by ours": len(passed),
        "passed by stock alone": ", ".join(sorted(by_stock - passed)) or "none",
    }
    return Measured(values)


def _passed(outcomes: Path) -> set[str]:
    """Names of the tests that passed."""
    tests = json.loads(outcomes.read_text())["tests"].items()
    return {name.split("::", 1)[1] for name, each in tests if each["outcome"] in ("passed", "xpassed")}


def wrong_classes(options: Options) -> Measured:
    from tests.gates.equality import SETTINGS, all_compared
    from tests.gates.mutants import CAUGHT_UNDER, Faithful

    settings = {each.name: each for each in SETTINGS}
    classes = [(Faithful, next(iter(CAUGHT_UNDER.values()))), *CAUGHT_UNDER.items()]
    pairs = [(settings[setting], f"tests.gates.mutants:{chosen.__name__}") for chosen, setting in classes]
    right, *others = all_compared(pairs, jobs=options.jobs, say=options.say)
    missed = [chosen.__name__ for (chosen, _), each in zip(classes[1:], others, strict=True) if each.equal]
    values = {
        "right class": "equal" if right.equal else "; ".join(right.wrong),
        "wrong classes": len(others),
        "told apart from stock": len(others) - len(missed),
    }
    return Measured(values, [f"{name} equals stock" for name in missed])


STEP = "tests/trainer/step"
KILLS = "tests/scripts/test_random_kills.py"
ON_TWO_PROCESSES = (
    f"{STEP}/test_several_processes.py",
    f"{STEP}/test_one_or_two_processes.py",
    f"{STEP}/test_microbatches.py",
    f"{STEP}/test_contract.py",
)
ALGORITHMS = "tests/trainer/algorithms"
GOLDEN = (
    f"{ALGORITHMS}/advantages/test_golden.py",
    f"{ALGORITHMS}/advantages/test_group_baselines.py",
    f"{ALGORITHMS}/advantages/test_edges.py",
    f"{ALGORITHMS}/coefficients/test_published_code.py",
    f"{ALGORITHMS}/token_weights/test_covariance_and_entropy.py",
)
GATES = [
    Gate(
        "parity",
        "default strategies train the weights of stock TRL, bit for bit",
        passing(f"{STEP}/test_parity.py", seconds=20 * MINUTE),
        TESTS,
        fast=True,
    ),
    Gate(
        "equality_quick",
        "gradients, weights and every log equal stock GRPOTrainer's step by step: a setting of each kind",
        equality(quick=True),
        EQUALITY,
        fast=True,
    ),
    Gate(
        "planned_gradient",
        "planned micro-batches have TRL's gradient in every step, from fewer tokens",
        planned_gradient,
        {
            "settings": EXACTLY,
            "largest difference": at_most(2e-6),
            "most tokens": near(0.02),
            "fewest tokens": near(0.02),
        },
        fast=True,
    ),
    Gate(
        "residuals",
        "tokens that a whole group shares cancel in every step where groups are kept, and not where they are scattered",
        residuals,
        {"trainings": EXACTLY, "largest residual": at_most(1e-6), "least residual": at_least(0.2)},
        fast=True,
    ),
    Gate(
        "wrong_classes",
        "the equality gate can fail: classes that are wrong in one small way each are told apart from stock",
        wrong_classes,
        {"right class": EXACTLY, "wrong classes": EXACTLY, "told apart": EXACTLY},
    ),
    Gate(
        "zoo",
        "strategies return the numbers that the authors' published code returned",
        passing("-m", "not slow and not gpu", *GOLDEN, seconds=20 * MINUTE),
        TESTS,
        fast=True,
    ),
    Gate(
        "equality",
        "gradients, weights and every log equal stock GRPOTrainer's step by step: all 72 settings",
        equality(quick=False),
        EQUALITY,
    ),
    Gate(
        "trl_tests",
        "TRL's own test file passes with our class in its place, where it passes with stock",
        trl_tests,
        {"passed by stock": SHOWN, "passed by ours": NO_FEWER, "passed by stock alone": NO_OTHERS},
    ),
    Gate(
        "two_processes",
        "the same on two processes: planned micro-batches, whole groups, and what several ranks share",
        passing("-m", "slow or not slow", "-k", "process or rank", *ON_TWO_PROCESSES, seconds=60 * MINUTE),
        TESTS,
    ),
    Gate(
        "resume",
        "a run that was stopped between rollout batches goes on bit for bit, on one process and two",
        passing("-m", "slow or not slow", "tests/scripts/test_resume.py", seconds=60 * MINUTE),
        TESTS,
    ),
    Gate(
        "kills_one",
        "ten kills of a run at random moments leave the run that nobody killed, bit for bit: one process",
        passing("-m", "slow", "-k", "[1]", KILLS, seconds=60 * MINUTE, RANDOM_KILLS="20", RANDOM_KILLS_SEED="1"),
        TESTS,
    ),
    Gate(
        "kills_two",
        "the same on two processes; the victim is a rank or the launcher",
        passing("-m", "slow", "-k", "[2]", KILLS, seconds=90 * MINUTE, RANDOM_KILLS="20", RANDOM_KILLS_SEED="1"),
        TESTS,
    ),
    Gate(
        "quickstart",
        "the run of the README learns what it learned",
        quickstart,
        {"held-out accuracy before": near(0.02), "held-out accuracy after": near(0.05), "optimizer steps": EXACTLY},
    ),
    Gate(
        "benchmark",
        "the update is as many times faster than stock TRL's as it was, and computes as many tokens",
        benchmark,
        {"tokens": EXACTLY, "times stock": no_lower(0.15)},
    ),
]
