"""Reward functions of anyone's, audited in processes of their own: each fault is named, an honest one left alone."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards.bench.audit import RIGHT, Audit, audit

FUNCTIONS = Path(__file__).with_name("audited_functions.py")


def audited(name: str, task: str | None = "text", **options: object) -> Audit:
    """With the task *text*, whose answers are three capitals: a hundred cases."""
    return audit(f"tests.rewards.bench.audited_functions:{name}", task=task, **options)  # type: ignore[arg-type]


def problems(result: Audit) -> dict[str, int]:
    return dict(Counter(finding.problem for finding in result.findings))


@pytest.mark.parametrize(("name", "shape"), [("waits", "messages"), ("texts_alone", "text")])
def test_an_honest_function_is_left_alone(name: str, shape: str) -> None:
    result = audited(name)
    assert problems(result) == {}
    assert (result.signature, result.shape, result.form, result.right_at) == ("TRL", shape, "so\n#### ANSWER", 0.5)
    assert all(map(result.is_paid, result.of_kinds(*RIGHT)))
    assert [len(result.of_kinds(kind)) for kind in ("gold", "wrong", "beside", "empty")] == [3, 3, 6, 9]


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("one_for_all", {"fails in a batch"}, "it returned 1 rewards for 8 completions: "),
        ("one_number", {"pays no gold"}, ": it returned 0.5."),
        ("careless", {"fails in TRL"}, "trainer_state"),
        ("mean_of_the_batch", {"changes from call to call"}, "first 0.75, then"),
        ("needs_a_package", {"pays no gold"}, "No module named 'absent_package' (audited_functions.py"),
        ("other_column", {"pays no gold"}, "argument: 'gold_text'"),
        ("counts_calls", {"changes from call to call"}, "first 1.0"),
    ],
)
def test_a_fault_is_named(name: str, found: set[str], said: str) -> None:
    result = audited(name)
    assert problems(result).keys() == found
    assert said in " ".join(finding.detail for finding in result.findings)


def test_what_hangs_or_crashes_costs_its_case() -> None:
    result = audited("breaks")
    said = {finding.asked.case.name: finding for finding in result.findings if finding.asked}
    assert "5.0 s" in said["an instruction to the judge"].detail
    assert said["an instruction to the judge"].problem == "over time"
    for name, problem, detail in (
        ("infinity", "crash", "SIGSEGV"),
        ("not a number", "crash", "exit code 7"),
        ("none", "fault", "raised SystemExit: no answer (audited_functions.py:"),
        ("true", "fault", "raised KeyError: 'answer' (audited_functions.py:"),
        ("an ellipsis", "unscored", "None"),
        ("a placeholder", "fault", "its reward is nan"),
    ):
        finding = said[f"{name} (its form)"]
        assert (finding.problem, detail in finding.detail) == (problem, True), finding
    assert len(said) == 7
    assert len(result.asked) == 98


def test_a_grader_of_numbers_is_asked_numbers() -> None:
    result = audited("last_number", task=None)
    assert (result.task, result.form) == ("math_answer", "so\n#### ANSWER")
    references = {str(each.case.row.reference) for each in result.asked}
    assert len(references) > 20
    assert all(re.fullmatch(r"-?[\d,]*\.?\d+", reference) for reference in references)
    found = problems(result)
    assert found.get("right answer refused", 0) <= 12, "ways to write a number, as 5.0 for 5"
    assert "wrong answer paid" in found, "the last number of an answer is not always the answer"


def test_the_rows_of_a_task_are_asked() -> None:
    result = audited("roles", task="logic")
    assert (result.task, len(result.of_kinds("gold"))) == ("knights_knaves", 8)
    assert problems(result).keys() == {"exploit paid", "fault"}, "it reads a beginning, and needs its tag"


SLOW = ["logic", "choice", "text", "form", "cosine_length", "math", "code", "reasoning_gym", "soft_overlong"]


@pytest.mark.parametrize("name", ["countdown", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_verifier_that_ships_has_no_findings(name: str) -> None:
    assert problems(audit(name)) == {}


def test_the_command_audits_a_module_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text(FUNCTIONS.read_text())
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "evenkeel", "audit", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    leaks = ran("rewards:leaks", "text", "--task", "text", "--json", "audit.json")
    assert leaks.returncode == 1, leaks.stderr
    assert "exploit: the gold with another        6        -     6" in leaks.stdout
    ours, theirs = reversed(json.loads((tmp_path / "audit.json").read_text()))
    assert (ours["function"], ours["findings"]) == ("text", [])
    assert theirs["kinds"]["beside"]["paid"] == len(theirs["findings"]) == 6
    assert {finding["reference"] for finding in theirs["findings"]} == {"Paris", "Rome", "Lima"}
    refused = ran("rewards:absent")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'rewards:absent' cannot be imported" in refused.stderr
    assert "PartError" not in refused.stderr


@pytest.mark.parametrize("option", ["form", "gold"])
def test_a_form_without_the_answer_is_refused(option: str) -> None:
    with pytest.raises(Refusal, match=f"--{option} '#### 1'.*ANSWER"):
        audited("good", **{option: "#### 1"})
