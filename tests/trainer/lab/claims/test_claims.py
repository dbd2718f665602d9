"""Claims on recorded sweeps: the answer, its cost, the certificate that notices a byte, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.command.claim import main
from evenkeel.trainer.lab.claims.certificate import FILES, changes
from evenkeel.trainer.run.config.yaml_document import write
from scripts.docket import page
from tests.paths import ROOT
from tests.trainer.lab.reports.recorded_sweep import VARIANTS, record_sweep

CLAIM: dict[str, Any] = {
    "claim": "Lopti helps.",
    "source": "arXiv 2505.12929",
    "variant": "lopti",
    "against": ["grpo", "ar"],
    "matters": 0.02,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep in which Lopti is better by a lot."""
    return record_sweep(tmp_path_factory.mktemp("sweep") / "results", effects={"lopti": 2.0})


@pytest.fixture
def folder(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a claim, its sweep with five seeds and a variable, the run file that names it, and the results."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(results, tmp_path / "results")
    policy = "configs/tiny_policy/countdown"
    run_file = (ROOT / "configs/quickstart.yaml").read_text().replace(policy, "$POLICY")
    (tmp_path / "base.yaml").write_text(run_file)
    sweep = {"config": "base.yaml", "baseline": "grpo", "seeds": [0, 1, 2, 3, 4], "output_dir": "results"}
    (tmp_path / "sweep.yaml").write_text(write({**sweep, "environment": {"POLICY": policy}, "variants": VARIANTS}))
    written(tmp_path)
    return tmp_path


def written(folder: Path, sweep: str = "sweep.yaml", **changed: Any) -> str:
    """The file of a claim with changes."""
    (folder / "order.yaml").write_text(write({"sweep": sweep, "claims": {"helps": {**CLAIM, **changed}}}))
    return str(folder / "order.yaml")


def certified(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "order.certificate.json").read_text())
    return found


def test_an_answer_has_intervals_cost_and_certificate(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(folder / "order.yaml"), "--no-run"]) == 0
    said = capsys.readouterr().out
    assert "Supported: Lopti helps. (arXiv 2505.12929)" in said
    assert "5 seeds × 59 items of test" in said  # one was scored by nobody
    found = certified(folder)
    answer = found["answers"]["helps"]
    assert (answer["answer"], answer["cost"]["cells"]) == ("supported", 15)
    assert answer["cost"]["core_hours"] == pytest.approx(15 * 90 / 3600)
    assert answer["cost"]["tokens"] == 15 * 20_000
    assert all(each["low"] > 0 for each in answer["differences"].values())
    assert {"order.yaml", "sweep.yaml", "base.yaml"} <= found["configs"].keys()


def test_a_claim_is_about_the_outcome_that_it_names(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Of the residual less is better; a sweep that does not name it is refused before its cells are run."""
    claim = {"against": ["grpo"], "outcome": "residual"}
    assert main([written(folder, **claim)]) == 2
    assert "Write outcomes: [accuracy, residual] there" in capsys.readouterr().err
    with (folder / "sweep.yaml").open("a") as file:
        file.write("outcomes: [accuracy, residual]\n")
    for seed in range(5):
        for variant in ("grpo", "lopti"):
            with (folder / f"results/{variant}-s{seed}/run/metrics.jsonl").open("a") as log:
                residual = 0.5 - 0.02 * seed * (variant == "lopti") - 0.1 * (variant == "lopti")
                log.write(json.dumps({"step": 20, "cancellation/shared_prefix": residual}) + "\n")
    for direction, answer in (("better", "Supported"), ("worse", "Contradicted")):
        assert main([written(folder, **claim, direction=direction), "--no-run"]) == 0
        said = capsys.readouterr().out
        assert f"{answer}: " in said
        assert "lopti − grpo: -0.140 [-0.179, -0.101], 5 seeds\n" in said  # .1 + 0 … .08: t(4) = 2.776 · .0316 / √5


def test_a_file_holds_all_claims_of_its_sweep(folder: Path, capsys: pytest.CaptureFixture[str]):
    """Nobody logged a residual: that claim is not decided, and the others are answered."""
    with (folder / "sweep.yaml").open("a") as file:
        file.write("outcomes: [accuracy, residual]\n")
    changed = {
        "shares": {"outcome": "residual"},
        "helps": {},
        "hurts": {"direction": "worse"},
        "equals": {"variant": "ar", "against": ["grpo"]},
        "loses": {"variant": "grpo", "against": ["lopti"], "direction": "worse"},
    }
    claims = {name: {**CLAIM, **each} for name, each in changed.items()}
    (folder / "order.yaml").write_text(write({"sweep": "sweep.yaml", "claims": claims}))
    assert main([str(folder / "order.yaml"), "--no-run"]) == 0
    found = certified(folder)["answers"]
    answers = ["not decided", "supported", "contradicted", "not decided", "supported"]
    assert [each["answer"] for each in found.values()] == answers
    assert [name for name, each in found.items() if each["seeds_needed"]] == ["equals"]
    said, reason = capsys.readouterr().out, certified(folder)["answers"]["shares"]["reason"]
    assert said.count("Lopti helps.") == 5
    assert "no residual can be computed" in reason
    (folder / "docket").mkdir()
    for path in folder.glob("order.*"):
        shutil.copy(path, folder / "docket")
    for text in (said, page(folder / "docket")):
        assert reason in text
        assert "more than 1,000" not in text


def test_one_changed_byte_is_noticed_and_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(folder / "order.yaml"), "--no-run", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)["answers"]] == ["helps"]
    certificate = folder / "order.certificate.json"
    assert main(["--verify", str(certificate)]) == 0
    for kind, name in (
        ("configs", "sweep.yaml"),
        ("configs", "base.yaml"),
        ("results", "results/lopti-s3/run/metrics.jsonl"),
        ("results", next(name for name in certified(folder)["results"] if "ar-s0/run/evaluations" in name)),
    ):
        path = folder / name
        before = path.read_bytes()
        path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        assert changes(certificate) == [f"{kind}: {name}: changed"]
        path.write_bytes(before)
    (folder / "results/grpo-s1/run/summary.json").unlink()
    assert changes(certificate) == ["results: results/grpo-s1/run/summary.json: missing"]
    content = certified(folder)
    code = dict(content["code"])
    content["code"] = {**code, "trainer/lab/statistics/claim.py": "0" * 64, "trainer/gone.py": "0" * 64}
    del content["code"]["rewards/noise.py"]
    content["answers"]["helps"]["answer"] = "contradicted"
    certificate.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["--verify", str(certificate)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "certificate: order.certificate.json: changed",
        "code: rewards/noise.py: new",
        "code: trainer/gone.py: missing",
        "code: trainer/lab/statistics/claim.py: changed",
        "results: results/grpo-s1/run/summary.json: missing",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"against": ["grpo", "loptii"]}, "has no variant 'loptii'. Did you mean lopti?"),
        ({"against": ["lopti"]}, "compared with itself"),
        ({"sweep": "none.yaml"}, "order.yaml, line 1: sweep: there is no file none.yaml"),
        ({"matters": 0}, "line 10: claims.helps.matters: is 0, and should be greater than 0.\n"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], changed: Any, message: str
):
    assert main([written(folder, **changed), "--no-run"]) == 2
    assert message in capsys.readouterr().err


def test_fewer_seeds_than_planned_are_no_answer(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "results/ar-s4/run/summary.json").unlink()
    assert main([str(folder / "order.yaml"), "--no-run"]) == 2
    assert "helps: ar-s4 of results are not finished" in capsys.readouterr().err


def test_runs_of_other_settings_are_no_answer(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "results/ar-s4/cell.json").write_text('{"config": {"trl": {"learning_rate": 1.0}}, "attempts": []}')
    assert main([str(folder / "order.yaml"), "--no-run", "--json"]) == 2
    said = capsys.readouterr()
    assert "trl.learning_rate: 1.0 → 0.0001" in said.err
    assert said.out == ""
    (folder / "results/sweep.json").unlink()
    assert main([str(folder / "order.yaml"), "--no-run"]) == 2
    assert "has not been started" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--verify", str(folder / "order.certificate.json"), "--json"])
    (folder / "order.certificate.json").write_text(json.dumps({"sha256": "", "answers": {}, **dict.fromkeys(FILES, 1)}))
    assert main(["--verify", str(folder / "order.certificate.json")]) == 2


def test_seeds_that_are_added_to_an_answer_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]):
    sweep = folder / "sweep.yaml"
    whole = sweep.read_text()
    sweep.write_text(whole.replace("- 4\n", ""))
    assert main([str(folder / "order.yaml"), "--no-run"]) == 0
    sweep.write_text(whole)
    assert main([str(folder / "order.yaml"), "--no-run"]) == 2
    assert "Take seeds that are all new" in capsys.readouterr().err
