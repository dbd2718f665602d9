"""What the table of TRL's versions says of a pytest run."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from scripts import trl_versions
from scripts.trl_versions import Tried, failure, main, outcome


def test_the_cause_is_the_error_that_ended_the_test(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(
        "def test_right():\n    pass\n"
        "def test_wrong():\n    assert abs(-1) == 2\n"
        "def test_chained():\n"
        "    try:\n        {}[0]\n"
        "    except KeyError:\n        raise UnicodeError('what it says; and more')\n"
    )
    (tmp_path / "test_absent.py").write_text("import no_such_module\n")
    pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    pytest_run.append("--continue-on-collection-errors")
    subprocess.run(pytest_run, cwd=tmp_path, capture_output=True)
    causes = {case.get("name"): failure(case) for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase")}
    assert causes == {
        "test_right": None,
        "test_wrong": "assert 1 == 2",
        "test_chained": "UnicodeError: what it says; and more",
        "test_absent": "ModuleNotFoundError: No module named 'no_such_module'",
    }


@pytest.mark.parametrize(
    ("tests", "failed", "verdict"),
    [
        (9, [], "works"),
        (9, ["test_a", "test_b"], "works but for: no seam (test_a)"),
        (9, ["test_a", "tests.trainer.step.test_parity.test_b"], "broken by: no seam"),
        (1, ["test_a"], "broken by: no seam"),
        (0, [], "broken by: no test ran"),
    ],
)
def test_a_version_is_broken_where_it_is_not_trls_trainer_any_more(tests: int, failed: list[str], verdict: str):
    causes = {"Refusal: no seam; the way out": failed} if failed else {}
    assert Tried("1.16.0", True, tests, causes).verdict == verdict


@pytest.mark.slow
def test_the_release_that_is_installed_works(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(trl_versions, "FAST", ("tests/trainer/step/test_trl_contract.py",))
    assert main(["--versions", version("trl")]) == 0
    assert f"| {version('trl')} | yes |" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_breaks_a_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "test_parity.py").write_text("from trl import NoSuchTrainer\n")
    monkeypatch.setattr(trl_versions, "FAST", (str(tmp_path / "test_parity.py"),))
    tried = outcome(f"trl=={version('trl')}", "it", Requirement("trl<1"), slow=False)
    assert (tried.is_declared, tried.works) == (False, False)
    assert tried.verdict.startswith("broken by: ImportError: cannot import name 'NoSuchTrainer'")
