"""Logs of every kind of trainer are read, and what cannot be read is refused in words."""

import codecs
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.command.doctor import main
from evenkeel.trainer.lab.doctor.readers import read
from evenkeel.trainer.lab.doctor.rules import Examination

TRL_LINES = [
    {"step": n, "reward": 0.5, "grad_norm": 0.3, "learning_rate": 0.0, "entropy": 0.4, "completions/mean_length": 90.0}
    for n in range(1, 13)
]
VERL_LINES = [
    {
        "step": n,
        "data": {
            "training/global_step": n,
            "critic/score/mean": 0.0,
            "critic/score/max": 0.0,
            "critic/score/min": 0.0,
            "response_length/mean": 1024.0,
            "response_length/clip_ratio": 1.0,
            "actor/entropy": 0.4,
            "actor/grad_norm": 0.1,
            "actor/lr": 1e-6,
            "actor/kl_loss": 2.0,
            "actor/pg_clipfrac": 0.001,
            "val-core/gsm8k/acc/mean@1": 0.3,
        },
    }
    for n in range(1, 13)
]


def jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def found(path: Path) -> dict[str, int]:
    return {name: each.first_step for name, each in Examination().add_all(read(path).lines).findings.items()}


@pytest.fixture(scope="module")
def wandb_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What wandb itself writes offline, as transformers' callback logs into it: ``train/…`` and the step beside it."""
    import wandb

    folder = tmp_path_factory.mktemp("wandb_runs")
    with wandb.init(mode="offline", dir=folder, project="doctor", settings={"console": "off"}) as run:
        for line in TRL_LINES:
            numbers = {f"train/{name}": value for name, value in line.items() if name != "step"}
            run.log({**numbers, "train/global_step": line["step"]})
            run.log({"profiling/generate": 0.5, "train/global_step": line["step"], "text": "x" * 9000})
            run.log({"eval/reward": math.nan, "train/global_step": line["step"]})
    return folder


def test_a_run_of_ours_transformers_state_and_wandb_say_the_same(tmp_path: Path, wandb_folder: Path):
    (tmp_path / "metrics.jsonl").write_bytes(jsonl(TRL_LINES))
    assert found(tmp_path) == {"learning-rate-zero": 3}
    for step in (9, 10):  # the newest counts, by number
        (tmp_path / "trl" / f"checkpoint-{step}").mkdir(parents=True)
        state = {"global_step": step, "log_history": [7, *TRL_LINES[: step - 6]]}
        (tmp_path / "trl" / f"checkpoint-{step}" / "trainer_state.json").write_text(json.dumps(state))
    assert read(tmp_path / "trl").path.parent.name == "checkpoint-10"
    assert found(tmp_path / "trl") == found(tmp_path / "trl" / "checkpoint-9") == {"learning-rate-zero": 3}
    assert read(tmp_path / "trl").damaged == ["log_history[0] is no object"]
    (file,) = wandb_folder.glob("wandb/offline-run-*/run-*.wandb")
    for path in (wandb_folder, wandb_folder / "wandb", file.parent, file):
        assert found(path) == {"learning-rate-zero": 3}
    record = read(file)
    assert len(record.lines) == len(TRL_LINES)  # what was logged apart belongs to one step
    assert record.damaged == []
    assert file.stat().st_size > 3 * 32768  # records cross the blocks of the format


def test_verls_file_is_read(tmp_path: Path):
    (tmp_path / "verl.jsonl").write_bytes(jsonl(VERL_LINES))
    expected = {"truncated": 5, "kl-runaway": 5}
    assert found(tmp_path) == expected
    assert found(tmp_path / "verl.jsonl") == expected
    flat = [{"step": line["step"], **line["data"]} for line in VERL_LINES]
    (tmp_path / "verl.jsonl").write_bytes(codecs.BOM_UTF8 + jsonl(flat))
    assert read(tmp_path).damaged == []
    assert found(tmp_path) == expected


def test_what_json_cannot_hold_and_words_are_no_numbers(tmp_path: Path):
    lines = [*TRL_LINES, {"step": 13, "grad_norm": "NaN", "reward": "high", "entropy": None, "loss": [1], "kl": True}]
    (tmp_path / "metrics.jsonl").write_bytes(jsonl(lines) + b'{"step": 14, "grad_norm": Infinity}\n{"step": 15, "re')
    record = read(tmp_path)
    assert record.damaged == ["line 15 is no JSON object"]
    assert record.lines[12][1].keys() == {"step", "grad_norm"}
    assert found(tmp_path)["not-finite"] == 13


REFUSED = {
    "absent": (None, "does not exist"),
    "empty.jsonl": (b"", "no line has a metric that a rule reads"),
    "other.jsonl": (b'{"step": 1, "accuracy_of_mine": 0.5}\n', "no line has a metric that a rule reads"),
    "text.jsonl": (b"step 1: reward .5\n", "line 1 is no JSON object"),
    "deep.jsonl": (b"[" * 100_000, "line 1 is no JSON object"),
    "trainer_state.json": (b'{"log_history": [{"st', "is cut off or has no list log_history"),
    "list.json": (b"[]", "is cut off or has no list log_history"),
    "run-x.wandb": (b"PK\x03\x04", "does not begin as a file of W&B does"),
    "run-y.wandb": (b":W&B\xe1\xbe\x00\x00\x00", "from byte 7 on it is cut off or damaged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_log_is_refused_in_words(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    content, words = REFUSED[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path / name)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert name in said.err


def damaged(content: bytes, draw: random.Random) -> bytes:
    """``content`` cut off, with a part taken out, doubled, or with bytes changed."""
    first, last = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    made = {
        "cut": content[:last],
        "hole": content[:first] + content[last:],
        "twice": content[:last] + content[first:],
        "bytes": content[:first] + draw.randbytes(draw.randrange(1, 9)) + content[first + 4 :],
        "words": content.replace(
            draw.choice([b"0.3", b"0.5", b": 1", b"step"]), draw.choice([b'"a"', b"NaN", b"{}", b""])
        ),
    }
    return made[draw.choice(sorted(made))]


@pytest.mark.parametrize("kind", ["metrics.jsonl", "verl.jsonl", "trainer_state.json", "run-x.wandb"])
def test_damaged_files_give_a_report_or_a_refusal_and_never_a_traceback(
    kind: str, tmp_path: Path, wandb_folder: Path, capsys: pytest.CaptureFixture[str]
):
    (file,) = wandb_folder.glob("wandb/offline-run-*/run-*.wandb")
    whole = {
        "metrics.jsonl": jsonl(TRL_LINES),
        "verl.jsonl": jsonl(VERL_LINES),
        "trainer_state.json": json.dumps({"global_step": 12, "log_history": TRL_LINES}).encode(),
        "run-x.wandb": file.read_bytes(),
    }[kind]
    draw = random.Random(0)
    statuses = set()
    for _ in range(100):
        (tmp_path / kind).write_bytes(damaged(whole, draw))
        arguments = [str(tmp_path / kind), *draw.choice([[], ["--json"]])]
        status = main(arguments)
        statuses.add(status)
        said = capsys.readouterr()
        assert bool(said.err) == (status == 2)
        if "--json" in arguments and status != 2:
            json.loads(said.out)
    assert statuses >= {1, 2}
