"""Where a run goes: begun, gone on with, or refused; never an older run in the place of this one."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig, load_config
from evenkeel.trainer.run.record.directory import check_same_run
from evenkeel.trainer.run.record.placement import AUTO, NEWEST, Placement, place
from evenkeel.trainer.run.record.run_record import RunRecord
from tests.paths import ROOT
from tests.trainer.run.test_checkpoints import saved

RUN = """
model: {name_or_path: somewhere/model}
data: {train: {path: somewhere/rows}}
rewards: [{verifier: exact_match}]
trl: {learning_rate: 1e-6, max_steps: 10, lr_scheduler_type: constant}
"""
RECORD = {"world_size": 1, "data_fingerprints": {}, "model_files": {}, "own_code": {}}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    monkeypatch.setenv("WANDB_DIR", "")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "")
    for name in ("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    (tmp_path / "run.yaml").write_text(RUN + f"output_dir: {tmp_path / 'run'}\n")
    return load_config(tmp_path / "run.yaml")


def placed(config: RunConfig, resume: str | None) -> Placement:
    args = SimpleNamespace(process_index=0, world_size=1, eval_on_start=True, max_steps=-1)
    placement = place(config, args, resume, {})
    assert args.output_dir == str(placement.run)
    assert args.eval_on_start == (placement.checkpoint is None)
    return placement


def begun(config: RunConfig, number: int, *steps: int) -> Path:
    """The directory of a run that was begun, with whole checkpoints at ``steps``."""
    run = Path(config.output_dir if number == 1 else f"{config.output_dir}-{number}")
    run.mkdir()
    for step in steps:
        saved(run, step)
    config.save_resolved(run / "config.yaml")
    (run / "manifest.json").write_text(json.dumps(RECORD))
    return run


def test_auto_begins_goes_on_and_begins_again(config):
    first = placed(config, AUTO)
    assert (first.run.name, first.checkpoint) == ("run", None)
    del first
    again = placed(config, AUTO)  # ended before its first checkpoint, perhaps while loading
    assert (again.run.name, again.checkpoint) == ("run-2", None)
    assert "run ended before its first complete checkpoint" in again.lines[-1]
    again_run = again.run
    del again
    (again_run / "config.yaml").write_text("")  # the disk was full
    assert placed(config, AUTO).run.name == "run-3"
    run = begun(config, 4, 2, 4)
    on = placed(config, AUTO)
    assert (on.run, on.checkpoint) == (run, run / "checkpoint-4")


def test_resume_never_takes_an_older_run_for_the_newest(config):
    older = begun(config, 2, 6)
    begun(config, 3)
    with pytest.raises(Refusal, match=r"no complete checkpoint in .*run-3"):
        placed(config, NEWEST)
    assert placed(config, str(older)).checkpoint == older / "checkpoint-6"


def test_another_experiment_is_not_taken_for_a_later_run(config, tmp_path):
    """Its name only looks like a number behind this one's; and a name may have brackets."""
    run = begun(config, 1, 2)
    for name in ("run-2", "run-²", "run-02"):
        begun(load_config(tmp_path / "run.yaml", [f"output_dir={tmp_path / name}"]), 1, 2)
    assert placed(config, AUTO).run == run
    brackets = load_config(tmp_path / "run.yaml", [f"output_dir={tmp_path}/a[1]"])
    begun(brackets, 1, 2)
    assert placed(brackets, AUTO).run == tmp_path / "a[1]"
    later = begun(brackets, 2, 2)
    assert placed(brackets, NEWEST).run == later == tmp_path / "a[1]-2"


def test_what_is_no_run_is_neither_resumed_nor_written_to(config, tmp_path):
    named = begun(config, 1, 2) / "checkpoint-2"
    for folder, said in ((named, f"its run, {named.parent}"), (tmp_path / "nowhere", "not the directory of a run")):
        with pytest.raises(Refusal, match=said):
            placed(config, str(folder))
    assert not (named / "owner.lock").exists()
    (tmp_path / "link").symlink_to(tmp_path / "disk_that_is_not_mounted")
    with pytest.raises(Refusal, match="cannot be written"):
        placed(load_config(tmp_path / "run.yaml", [f"output_dir={tmp_path}/link/run"]), None)


@pytest.mark.parametrize("resume", [NEWEST, AUTO])
def test_a_broken_checkpoint_is_named_and_set_aside(config, capsys, resume):
    run = begun(config, 1, 2, 4)
    (run / "checkpoint-4" / "optimizer.pt").unlink()
    assert placed(config, resume).checkpoint == run / "checkpoint-2"
    assert "checkpoint-4 is broken: optimizer.pt is missing. It is now broken-checkpoint-4." in capsys.readouterr().out
    assert sorted(path.name for path in run.glob("*checkpoint-*")) == ["broken-checkpoint-4", "checkpoint-2"]


def test_auto_does_not_go_on_under_other_settings(config, tmp_path):
    begun(config, 1, 2)
    with pytest.raises(Refusal, match="learning_rate"):
        placed(load_config(tmp_path / "run.yaml", ["trl.learning_rate=1e-5"]), AUTO)


@pytest.mark.parametrize(
    ("schedule", "settings", "started", "refused"),
    [
        ("constant", ["trl.max_steps=20", "logging.samples_every_steps=1", "output_dir=elsewhere"], 2, ""),
        ("constant", [], 1, "on 1 processes and would be resumed on 2"),
        (
            "constant",
            ["trl.learning_rate=0.1", "trl.weight_decay=0.5"],
            2,
            r"trl.learning_rate: 1e-06 → 0.1\n  trl.weight_decay: 'absent' → 0.5",
        ),
        ("linear", ["trl.max_steps=20"], 2, r"trl.max_steps: 10 → 20\nThe learning rate depends on how long"),
    ],
)
def test_a_continuation_may_last_longer_but_not_train_otherwise(
    tmp_path: Path, schedule: str, settings: list[str], started: int, refused: str
):
    (tmp_path / "base.yaml").write_text(RUN.replace("constant", schedule))
    load_config(tmp_path / "base.yaml").save_resolved(tmp_path / "config.yaml")
    again = load_config(tmp_path / "base.yaml", settings)
    with pytest.raises(Refusal, match=refused) if refused else nullcontext():
        check_same_run(again, RunRecord(tmp_path), started, 2)


def test_the_best_checkpoint_stays_that_of_one_metric(tmp_path: Path):
    (tmp_path / "base.yaml").write_text(f"{RUN}evaluation: {{every_steps: 2, keep_best: eval/test/avg@1}}\n")
    held_out = "data.test={path: somewhere/else}"
    config = load_config(tmp_path / "base.yaml", [held_out])
    config.save_resolved(tmp_path / "config.yaml")
    check_same_run(config, RunRecord(tmp_path), 1, 1)
    other = "evaluation={samples: 2, keep_best: eval/test/avg@2}"
    with pytest.raises(Refusal, match=r"'eval/test/avg@1' → 'eval/test/avg@2'"):
        check_same_run(load_config(tmp_path / "base.yaml", [held_out, other]), RunRecord(tmp_path), 1, 1)


LEAVES_CHILDREN = """
import os, subprocess, sys, time
from pathlib import Path
from evenkeel.trainer.run.record.directory import owned
held = owned(Path(sys.argv[1]))
subprocess.Popen(["cat"])
if os.fork():
    time.sleep(60)
print("forked", flush=True)
sys.stdin.read()
"""


def test_a_run_that_goes_on_elsewhere_is_left_alone_until_its_process_is_gone(config):
    """Its children, which a kill leaves behind, do not keep the lock."""
    run = begun(config, 1, 2)
    command = [sys.executable, "-c", LEAVES_CHILDREN, str(run)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as holder:
        assert holder.stdout.readline() == "forked\n"
        for resume in (AUTO, str(run)):
            with pytest.raises(Refusal, match=f"process {holder.pid} on .*, which works there"):
                placed(config, resume)
        holder.kill()
        holder.wait()
        assert placed(config, AUTO).checkpoint == run / "checkpoint-2"


def test_a_run_that_goes_on_stays_one_run_at_wandb_and_another_run_is_another(config):
    logging = config.logging.model_copy(update={"report_to": ["wandb"]})
    reporting = config.model_copy(update={"logging": logging})
    run = begun(reporting, 1, 2)
    placed(reporting, str(run)).lock = None
    id_of_first = os.environ["WANDB_RUN_ID"]
    assert (run / "wandb_run_id.txt").read_text().strip() == id_of_first
    assert (os.environ["WANDB_RESUME"], os.environ["WANDB_DIR"]) == ("allow", str(run))
    assert str(placed(reporting, None).run) == os.environ["WANDB_DIR"] != str(run)  # in the same process
    assert os.environ["WANDB_RUN_ID"] != id_of_first
    assert placed(reporting, str(run)).checkpoint == run / "checkpoint-2"
    assert os.environ["WANDB_RUN_ID"] == id_of_first


def test_what_may_differ_from_a_run_without_a_stop_is_said_as_it_goes_on(config, tmp_path):
    run = begun(config, 1, 2)
    assert not any("versions" in line or "vLLM" in line for line in placed(config, AUTO).lines)
    record = json.loads((run / "manifest.json").read_text())
    now = {found.name.lower(): found.version for found in distributions()}
    packages = {**now, "torch": "2.0.1", "vllm": "0.30.0", "trl-evenkeel": "0.0.1", "sympy": "1.0"}
    other = {"packages": packages, "python": "3.9.1", "environment": {"EVENKEEL_OFF": "compact"}}
    (run / "manifest.json").write_text(json.dumps({**record, **other}))
    (line,) = [line for line in placed(config, AUTO).lines if "other versions" in line]
    for name in ("packages.trl-evenkeel", "python", "packages.sympy", "environment.EVENKEEL_OFF"):
        assert f"{name}: " in line
    assert f"packages.torch: 2.0.1 → {now['torch']}" in line
    assert "packages.vllm: 0.30.0 → absent" in line

    with_vllm = load_config(tmp_path / "run.yaml", ["trl.use_vllm=true"])
    with_vllm.save_resolved(run / "config.yaml")
    assert any("vLLM" in line and "without the stop" in line for line in placed(with_vllm, AUTO).lines)
