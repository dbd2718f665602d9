"""A run goes on with the rows, the model and the code that it was started with, or says what changed and is refused."""

import importlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.record.manifest import (
    check_same_run_again,
    model_files,
    own_code,
    read_manifest,
    record_changes,
    starting_point,
    write_manifest,
)
from evenkeel.trainer.run.record.placement import Placement, place
from tests.tiny_model import save_tiny_model
from tests.trainer.run.test_checkpoints import flip_one_bit, saved

RUN = """
output_dir: run
model: {name_or_path: model, chat_template: mine.jinja}
data: {train: {generator: 'own_parts.rows:made'}}
rewards: [{verifier: 'own_parts.judge:judge'}, {verifier: exact_match, name: other}]
algorithm: {token_weight: {name: 'own_weight:weigh'}}
"""
CODE = {
    "own_parts/__init__.py": "",
    "own_parts/judge.py": "from .scale import SCALE\nimport json, numpy\ndef judge(completion, reference): ...\n",
    "own_parts/scale.py": "import own_helper.deep as deep\nSCALE = 2\n",
    "own_parts/rows.py": "def made():\n    from own_parts import late\n    return []\n",
    "own_parts/late.py": "COUNT = 3\n",
    "own_parts/unused.py": "NOTHING = 0\n",
    "own_helper/__init__.py": "",
    "own_helper/deep.py": "import evenkeel.trainer\nDEPTH = 1\n",
    "mine.jinja": "{{ messages }}",
    "own_weight.py": "def weigh(mask): return mask\n",
}


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run with one checkpoint, and its parts built."""
    for name, text in CODE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copytree(tiny_model, tmp_path / "model")
    (tmp_path / "run.yaml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("WANDB_DIR", "WANDB_DATA_DIR", "TENSORBOARD_LOGGING_DIR"):  # of a placed run: no other test's
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for module in ("own_parts.judge", "own_parts.rows", "own_weight"):
        importlib.import_module(module)
    sys.modules["own_parts.rows"].made()
    write_manifest(tmp_path / "run", load_config("run.yaml"), 1, start())
    saved(tmp_path / "run", 4)
    yield tmp_path
    for module in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[module]


def start(rows: str = "a") -> dict[str, Any]:
    return starting_point(load_config("run.yaml"), {"train": rows * 64, "test": "b" * 64})


def resumed(*, rows: str = "a", accept: bool = False, resume: str = "auto") -> Placement:
    args: Any = SimpleNamespace(process_index=0, world_size=1, eval_on_start=False, output_dir="run", max_steps=-1)
    return place(load_config("run.yaml"), args, resume, start(rows), accept_changes=accept)


def edited(name: str, change: Callable[[str], str] = lambda text: text + "\n") -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(change((folder / name).read_text()))


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "what the verifier imports beside it": (edited("own_parts/scale.py"), "own_parts.scale"),
    "one bit of a weight": (lambda folder: flip_one_bit(folder / "model/model.safetensors"), "model.safetensors"),
    "the chat template": (edited("model/chat_template.jinja", lambda text: text + " "), "chat_template.jinja"),
    "the file of another template": (edited("mine.jinja"), "model.chat_template"),
    "what is imported two steps away, of another package": (edited("own_helper/deep.py"), "own_helper.deep"),
    "what is imported inside a function": (edited("own_parts/late.py"), "own_parts.late"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_refused_by_name_and_accepted_where_it_is_said(folder: Path, name: str) -> None:
    change, named = CHANGES[name]
    change(folder)
    with pytest.raises(Refusal, match="--accept-changes") as caught:
        resumed()
    assert named in str(caught.value)
    assert str(caught.value).count("→") == 1
    placement = resumed(accept=True)
    assert [named in line for line in placement.changed] == [True]
    assert placement.checkpoint == Path("run/checkpoint-4")
    assert any(named in line for line in placement.lines)


def test_what_trains_nothing_else_is_no_change(folder: Path) -> None:
    (folder / "model/README.md").write_text("a text with the weights")
    save_tiny_model(folder / "model")  # the same weights written again
    placement = resumed()
    assert (placement.changed, placement.checkpoint) == ([], Path("run/checkpoint-4"))


def test_what_was_accepted_is_recorded_and_is_what_the_next_part_is_compared_with(folder: Path) -> None:
    edited("own_weight.py")(folder)
    placement = resumed(rows="c", accept=True)
    assert placement.checkpoint is not None
    placement.lock and placement.lock.release()
    record_changes(placement.run, placement.checkpoint, start("c"), placement.changed)
    assert resumed(rows="c").changed == []
    record = read_manifest(folder / "run")
    assert [entry["after"] for entry in record["accepted_changes"]] == ["checkpoint-4"]
    assert len(record["accepted_changes"][0]["changed"]) == 2
    with pytest.raises(Refusal, match="after checkpoint-4 with changes"):
        check_same_run_again(folder / "run", record, start("c"), 1)


def test_what_is_installed_and_what_is_ours_is_no_code_of_the_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below" / "site-packages").mkdir(parents=True)
    (folder / "below" / "site-packages" / "package_below.py").write_text("")
    monkeypatch.syspath_prepend(str(folder / "below" / "site-packages"))
    importlib.import_module("package_below")
    found = {name for name in own_code() if name.startswith(("own_", "package_below", "evenkeel", "json", "numpy"))}
    assert found == {
        *("own_parts", "own_parts.judge", "own_parts.scale", "own_parts.rows", "own_parts.late"),
        *("own_helper", "own_helper.deep", "own_weight"),
    }
    del sys.modules["package_below"]


def test_a_module_that_only_one_part_of_the_run_imports_is_no_change(folder: Path) -> None:
    """A debugger, or a part that imports later: where it matters, what imports it has changed too."""
    for text in ("import own_parts.unused", "import own_parts.unused, own_parts.rows"):
        (folder / "own_late.py").write_text(text)
        sys.modules.pop("own_late", None)
        importlib.import_module("own_late")
        assert resumed().changed == []


def test_a_checkpoint_as_a_model_is_its_model_alone(folder: Path) -> None:
    before = model_files("model", None)
    for name in ("trainer_state.json", "manifest.json", "logged_so_far_0.json", "training_args.bin", "optimizer.pt"):
        (folder / "model" / name).write_text("{}")
    assert model_files("model", None) == before
