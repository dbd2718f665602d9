"""evenkeel train as its users run it: to the end, on two processes, stopped and resumed, and refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ruamel.yaml import YAML
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.command.doctor import main as doctor
from evenkeel.trainer.command.train import main
from evenkeel.trainer.run import training
from evenkeel.trainer.run.record.rollouts import RecordedRollouts
from evenkeel.trainer.run.record.wandb_file import records, row_of
from tests.paths import ROOT
from tests.waiting import wait_until

SETTINGS: dict[str, Any] = {
    "model": {"name_or_path": "set by the fixture"},
    "data": {
        part: {"generator": {"name": "countdown", "part": part, "train": 32, "test": 8, "seed": 0}}
        for part in ("train", "test")
    },
    "rewards": [{"verifier": "tests.scripts.verifiers:share_of_digits"}],
    "algorithm": {"prompts_per_rollout": 4, "sequences_per_update": 16},
    "trl": {
        "per_device_train_batch_size": 16,
        "num_generations": 4,
        "max_completion_length": 8,
        "max_steps": 4,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_steps": 2,
    },
    "evaluation": {"batch_size": 4},
}


def write_run(folder: Path, model: Path, name: str = "run", /, **sections: Any) -> Path:
    """SETTINGS with ``sections``, whose keys come over theirs, as ``<folder>/<name>.yaml``; the run is beside it."""
    settings = {**SETTINGS, "name": "run", "output_dir": str(folder / name)}
    for key, given in {"model": {"name_or_path": str(model)}, **sections}.items():
        settings[key] = {**settings.get(key, {}), **given} if isinstance(given, dict) else given
    path = folder / f"{name}.yaml"
    YAML(typ="safe").dump(settings, path)
    return path


@pytest.fixture
def run_file(tiny_model: Path, tmp_path: Path) -> Path:
    """A complete run of a few seconds, as a YAML file in a directory of its own."""
    return write_run(tmp_path, tiny_model)


def launch(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


CLOCK = re.compile(r"(_s|_runtime|_per_second|step_time)$")


def untimed(run: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if not CLOCK.search(key)} for entry in metrics(run)]


def wandb_parts(folder: Path) -> list[list[Any]]:
    """W&B's records of each part of a run."""
    return [[*records(file.read_bytes(), [])] for file in sorted(folder.glob("wandb/offline-run-*/*.wandb"))]


def wandb_table(folder: Path) -> list[dict[str, Any]]:
    """The rows of W&B's table of completions."""
    paths = [row.get("rollouts/path") for part in wandb_parts(folder) for row in map(row_of, part)]
    files = [next(folder.glob(f"wandb/offline-run-*/files/{path}")) for path in paths if path]
    increments = [json.loads(file.read_text()) for file in files]
    return [dict(zip(each["columns"], row, strict=True)) for each in increments for row in each["data"]]


def test_a_run_moves_the_policy_and_leaves_everything_it_promises(run_file: Path, tiny_model: Path, tmp_path: Path):
    said = {"WANDB_NAME": "named", "WANDB_RUN_GROUP": "group", "WANDB_TAGS": "a,b", "WANDB_PROJECT": "project"}
    said |= {"WANDB_DIR": str(tmp_path), "WANDB_MODE": "", "WANDB_DATA_DIR": "", "WANDB_RUN_ID": ""}
    settings = "logging.report_to=[wandb, tensorboard]", "seed=3"
    result = launch("-m", "evenkeel", "train", str(run_file), *settings, **said)
    assert result.returncode == 0, result.stderr[-3000:]
    run = tmp_path / "run"
    summary = json.loads((run / "summary.json").read_text())
    assert summary["optimizer_steps"] == 4
    assert 0 <= summary["accuracy_before"] <= 1
    assert 0 <= summary["accuracy_after"] <= 1
    assert summary["wall_seconds"] > 0
    trained = [entry for entry in metrics(run) if "reward" in entry]
    assert [entry["step"] for entry in trained] == [1, 2, 3, 4]
    assert {"entropy", "completions/mean_length", "groups/frac_dead", "advantage/mean_abs"} <= trained[0].keys()
    assert {"groups/frac_all_correct", "groups/frac_all_wrong", "verifier/accuracy"} <= trained[0].keys()
    assert sum(trained[0][f"grad_share/q{quarter}"] for quarter in (1, 2, 3, 4)) == pytest.approx(1)
    assert (run / "reward_curve.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((run / "manifest.json").read_text())["packages"]["trl"].startswith("1.16")
    assert_wandb_has(run, tmp_path, summary)
    assert "wandb:" not in result.stderr  # the last lines are ours, and W&B's offline ones say nothing that they do not
    to_type = [line.split("#")[0].split()[1:] for line in result.stdout.splitlines() if line.startswith("  evenkeel ")]
    assert [name for name, *_ in to_type] == ["rollouts", "export", "report"]
    for name, *arguments in to_type:
        parsed = import_module(f"evenkeel.trainer.command.{name}").parser().parse_args(arguments)
        assert run in vars(parsed).values()
    assert "None" not in (run / "summary.md").read_text()
    assert list((run / "tensorboard").glob("events*"))
    assert "held-out accuracy after" in result.stdout

    checkpoint = run / "checkpoint-4"
    policy, start = (AutoModelForCausalLM.from_pretrained(path) for path in (checkpoint, tiny_model))
    pairs = zip(policy.parameters(), start.parameters(), strict=True)
    assert max((a - b).abs().max().item() for a, b in pairs) > 1e-3


def assert_wandb_has(run: Path, folder: Path, summary: dict[str, Any]) -> None:
    """W&B's files in ``folder`` hold the run: its names, settings, completions, accuracy and report."""
    (part,) = wandb_parts(folder)
    (begun,) = (record.run for record in part if record.HasField("run"))
    names = [begun.display_name, begun.run_group, begun.project, *begun.tags, begun.job_type, f"{begun.run_id}\n"]
    assert names == ["named", "group", "project", "a", "b", "train", (run / "wandb_run_id.txt").read_text()]
    items = [[item for record in part for item in getattr(record, kind).update] for kind in ("config", "summary")]
    config, last = ({item.key: json.loads(item.value_json) for item in each} for each in items)
    assert (config["variant"], config["seed"], config["branch_of"]) == ("run", 3, None)
    assert config["evenkeel"]["algorithm"]["prompts_per_rollout"] == 4
    (defined,) = (record.metric for record in part if record.metric.name == "eval/verifier/accuracy")
    assert (defined.step_metric, defined.summary.min, defined.summary.max) == ("train/global_step", True, True)
    logged = [*map(row_of, part)]
    assert any("profiling/Time taken: RLVRTrainer._prepare_inputs" in row for row in logged)  # by the class's name
    assert [row["train/global_step"] for row in logged if "train/reward" in row] == [1, 2, 3, 4]
    rows = [row for batch in RecordedRollouts(run).batches() for row in batch.to_pylist()]
    columns = ["prompt", "completion", "rewards/share_of_digits", "share_of_digits/reason", "advantage"]
    assert wandb_table(folder) == [{"step": row["step"] + 1} | {key: row[key] for key in columns} for row in rows]
    before, after = summary["accuracy_before"], summary["accuracy_after"]
    accuracy = [last[f"held_out/accuracy_{name}"] for name in ("before", "after", "gain", "best")]
    assert accuracy == [before, after, after - before, max(before, after)]
    sent = [each for record in part if record.artifact.type == "report" for each in record.artifact.manifest.contents]
    paths = [each.path for each in sent if folder in Path(each.local_path).parents]
    assert paths == ["report.html", "reward_curve.png"]


def test_a_run_repeated_from_its_directory_gives_the_same_numbers(run_file: Path, tmp_path: Path, capsys):
    run = tmp_path / "run"
    assert main([str(run_file), "seed=5"]) == 0
    capsys.readouterr()
    assert main(["--rerun", str(run)]) == 0
    differing = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Not as in")]
    assert [line for line in differing if ": git_" not in line] == []  # someone may edit the checkout meanwhile
    assert len(untimed(run)) >= 6
    assert untimed(run) == untimed(tmp_path / "run-2")

    recorded = json.loads((run / "manifest.json").read_text())
    recorded["data_fingerprints"]["train"] = "0" * 64
    (run / "manifest.json").write_text(json.dumps(recorded))
    assert main(["--rerun", str(run)]) == 2
    assert "data_fingerprints.train: " in capsys.readouterr().err


def test_a_resumed_run_takes_what_it_took_when_it_began(run_file: Path, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setenv("EVENKEEL_OFF", "microbatches")
    assert main([str(run_file), "trl.max_steps=2"]) == 0
    record = json.loads((tmp_path / "run/manifest.json").read_text())["choices"]
    assert (record["microbatches"], record["generation"]) == (False, True)
    monkeypatch.setenv("EVENKEEL_OFF", "generation")
    made: list[RLVRTrainer] = []
    monkeypatch.setattr(training, "run_trainer", lambda trainer, *_, **__: made.append(trainer) or 0)
    assert main([str(run_file), "--resume", "auto"]) == 0
    assert (made[0].parts.microbatches.planner, made[0].parts.choices["generation"]) == (None, False)
    assert "choices.generation: True → False" in capsys.readouterr().out


def test_a_run_stopped_behind_its_last_checkpoint_gets_its_summary_and_no_step_more(
    run_file: Path, tmp_path: Path, capsys, monkeypatch
):
    run = tmp_path / "run"
    assert main([str(run_file), "trl.max_steps=2"]) == 0
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").unlink()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "rew')  # a kill in the middle of a line
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))  # no room for another checkpoint
    assert main([str(run_file), "trl.max_steps=2", "--resume"]) == 0
    again = json.loads((run / "summary.json").read_text())
    same = ("optimizer_steps", "tokens_seen", "accuracy_before", "accuracy_after", "reward_last")
    assert [again[key] for key in same] == [summary[key] for key in same]
    assert sorted(path.name for path in run.glob("checkpoint-*")) == ["checkpoint-2"]
    capsys.readouterr()
    assert main([str(run_file), "trl.max_steps=2", "--resume"]) == 0
    assert "nothing is left to train" in capsys.readouterr().out
    assert main([str(run_file), "trl.max_steps=4", "--resume"]) == 2
    assert "output_dir" in capsys.readouterr().err
    assert main([str(run_file), f"output_dir={tmp_path / 'other'}", "--resume", "auto"]) == 2
    assert not (tmp_path / "other").exists()


REFUSALS = [  # one of each room; each rule is tested where it stands
    (["trl.learning_rte=1"], "learning_rate"),
    (["data.train={path: no/such/file.parquet, generator: null}"], "no/such/file.parquet"),
    (["rewards.0.verifier=countdwn"], "Did you mean countdown?"),
    (["num_processes=2"], "num_processes"),
    (["--resume"], "There is no run in"),
]


@pytest.mark.parametrize(("arguments", "expected"), REFUSALS, ids=[" ".join(case[0]) for case in REFUSALS])
def test_what_cannot_work_is_refused_in_words_before_the_model_loads(run_file, tmp_path, capsys, arguments, expected):
    assert main([str(run_file), *arguments]) == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "run").exists()


def test_a_prefilled_thought_ends_the_prompt_and_counts(run_file: Path, tmp_path: Path):
    from evenkeel.trainer.run.config import load_config
    from evenkeel.trainer.run.tokenizer import load_tokenizer

    tokenizer, prefilled = load_tokenizer(load_config(run_file, ['model.assistant_prefix="<think>\\n"']))
    asked = [{"role": "user", "content": "a"}]
    rendered = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    assert rendered == "user a assistant <think>\n"
    assert prefilled
    assert not load_tokenizer(load_config(run_file))[1]
    tokenizer.save_pretrained(tmp_path / "checkpoint")  # ends its prompts so itself, and once is enough
    overrides = ['model.assistant_prefix="<think>\\n"', f"model.name_or_path={tmp_path / 'checkpoint'}"]
    again, _ = load_tokenizer(load_config(run_file, overrides))
    assert again.chat_template == tokenizer.chat_template
    text = "{{ messages[0].content }}: <think>"
    (tmp_path / "mine.jinja").write_text(text)
    (tmp_path / "raw").mkdir()  # a folder of that name is not the template
    assert load_config(run_file, ["model.chat_template=raw"]).model.raw_prompts
    mine, prefilled = load_tokenizer(load_config(run_file, ["model.chat_template=mine.jinja"]))
    mine.save_pretrained(tmp_path / "other")
    assert (AutoTokenizer.from_pretrained(tmp_path / "other").chat_template, prefilled) == (text, True)


def test_a_run_says_what_the_doctor_finds_in_every_log_that_it_leaves(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 24 words one ends an answer: (23/24)^8 = 71 % of the random policy's are cut off after eight."""
    assert main([str(run_file), "trl.max_steps=6", "logging.report_to=none"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "were truncated" in line]
    assert [line.split(": ")[:2] for line in said] == [["step 5", "warning"]]
    run, findings = tmp_path / "run", []
    for log in (run, run / "checkpoint-6"):
        assert doctor([str(log), "--json"]) == 1
        findings.append(json.loads(capsys.readouterr().out)["findings"])
    assert findings[0] == findings[1]
    assert [(each["rule"], each["first_step"]) for each in findings[0]] == [("truncated", 5)]


@pytest.mark.slow
def test_a_run_stopped_while_it_loads_starts_with_resume_auto(run_file: Path, tmp_path: Path, capfd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "evenkeel", "train", str(run_file), "trl.max_steps=2", "--resume", "auto"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # made behind all checks, before the model is loaded
    wait_until((tmp_path / "run").exists, can_still=lambda: process.poll() is None)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 143, said
    assert said.count("Stopped without a new checkpoint") == 1
    assert "Traceback" not in said
    assert not list((tmp_path / "run").glob("checkpoint-*"))
    assert main([str(run_file), "trl.max_steps=2", "--resume", "auto"]) == 0
    assert "run ended before its first complete checkpoint, so the run starts again" in capfd.readouterr().out
    assert max(line["step"] for line in metrics(tmp_path / "run-2")) == 2
