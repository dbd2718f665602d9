"""Whole runs are compared in turn, each in its own process; a run that fails is no measurement."""

import json
from pathlib import Path

import pytest

from evenkeel.rewards.registry import Refusal
from scripts.benchmarks.runs import compared_runs

PROGRAM = """
import json, pathlib, sys
settings = dict(argument.split("=", 1) for argument in sys.argv[2:])
if settings["mode"] == "broken":
    sys.exit("the reason")
run = pathlib.Path(settings["output_dir"])
run.mkdir()
(run / "summary.json").write_text(json.dumps({"accuracy_after": float(settings["mode"])}))
with open(sys.argv[1], "a") as order:
    order.write(settings["mode"] + " ")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def test_runs_take_turns_and_their_results_are_told(program: Path, tmp_path: Path) -> None:
    order, variants = tmp_path / "order", {"a": ["mode=0.25"], "b": ["mode=0.5"]}
    result = compared_runs(program, str(order), variants, rounds=2, say=lambda line: None)
    assert order.read_text().split() == ["0.25", "0.5", "0.5", "0.25"]
    assert [result[name]["accuracy"] for name in "ab"] == [[0.25, 0.25], [0.5, 0.5]]
    (a, b), (c, d) = (result[name]["seconds"] for name in "ab")
    assert result["b"]["faster_than_first"]["median"] == pytest.approx((a / c + b / d) / 2)
    assert result["a"]["faster_than_first"] == {"median": 1.0, "least": 1.0, "most": 1.0}
    assert json.dumps(result)


def test_a_run_that_fails_is_refused_with_its_last_words(program: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="status 1:\nthe reason"):
        compared_runs(program, str(tmp_path / "order"), {"a": ["mode=broken"]}, rounds=1, say=lambda line: None)
