"""One rule for every path of a run file: expanded; what is read is looked for here, then beside the file."""

from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig, load_config

PLACES = ("model.name_or_path", "data.train.path", "trl.deepspeed", "model.chat_template")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``home``, ``here`` (the current directory) and ``beside`` (with the run file), ``thing/one.json`` in each."""
    for name in ("home", "here", "beside"):
        (tmp_path / name / "thing").mkdir(parents=True)
        (tmp_path / name / "thing" / "one.json").write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCRATCH", str(tmp_path / "home" / "thing"))
    monkeypatch.delenv("NOWHERE", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "beside" / "run.yaml").write_text(
        "model: {name_or_path: m/x}\ndata: {train: {path: a/b}, test: {path: a/b}}\n"
        "rewards: [{verifier: exact_match}]\n"
    )
    return tmp_path


def read(folder: Path, place: str, text: str) -> str:
    """What the place of the run file becomes when it says ``text``."""
    config: RunConfig = load_config(folder / "beside" / "run.yaml", [f"{place}='{text}'"])
    value = config.model_dump()
    for key in place.split("."):
        value = value[key]
    return str(value)


CASES = [
    ("~/thing/one.json", "home/thing/one.json"),
    ("${SCRATCH}/one.json", "home/thing/one.json"),
    ("thing/one.json", "here/thing/one.json"),
    ("../beside/thing/one.json", "here/../beside/thing/one.json"),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("text", "found"), CASES)
def test_what_is_read(folder: Path, place: str, text: str, found: str) -> None:
    assert Path(read(folder, place, text)) == folder / found


@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_here_is_looked_for_beside_the_file(folder: Path, place: str) -> None:
    (folder / "here" / "thing" / "one.json").unlink()
    assert Path(read(folder, place, "thing/one.json")) == folder / "beside/thing/one.json"


def test_what_the_file_itself_names_is_looked_for_beside_it_and_then_here(folder: Path) -> None:
    file = folder / "beside" / "run.yaml"
    file.write_text(file.read_text().replace("m/x", "thing/one.json"))
    assert Path(load_config(file).model.name_or_path) == folder / "beside/thing/one.json"
    (folder / "beside" / "thing" / "one.json").unlink()
    assert Path(load_config(file).model.name_or_path).resolve() == folder / "here/thing/one.json"


def test_a_model_that_is_missing_beside_the_file_is_no_hub_id(folder: Path) -> None:
    (folder / "here" / "thing" / "one.json").unlink()
    (folder / "here" / "thing").rmdir()
    assert Path(read(folder, "model.name_or_path", "thing/two")) == folder / "beside/thing/two"
    assert read(folder, "model.name_or_path", "owner/two") == "owner/two"


@pytest.mark.parametrize(
    ("text", "made"), [("~/x", "home/x"), ("${HOME}/x-$SCRATCH", "home/x-home/thing"), ("runs/x", "runs/x")]
)
def test_what_is_written_is_from_the_current_directory(folder: Path, text: str, made: str) -> None:
    wanted = made if made == text else f"{folder}/{made}".replace("x-home", f"x-{folder}/home")
    assert read(folder, "output_dir", text) == wanted


@pytest.mark.parametrize("place", ["output_dir", "data.train.path"])
@pytest.mark.parametrize("text", ["$NOWHERE/x", "~nobody0/x", "a/${NO WHERE}"])
def test_what_cannot_be_expanded_is_refused(folder: Path, place: str, text: str) -> None:
    with pytest.raises(Refusal) as caught:
        read(folder, place, text)
    assert [(problem.key, problem.code) for problem in caught.value.problems] == [(place, "unset-variable")]


def test_a_file_whose_name_has_a_dollar_is_read(folder: Path) -> None:
    (folder / "here" / "cost$5.json").write_text("{}")
    (folder / "here" / "$NOWHERE.json").write_text("{}")
    assert read(folder, "data.train.path", "cost$5.json").endswith("cost$5.json")
    assert read(folder, "data.train.path", "$NOWHERE.json").endswith("$NOWHERE.json")


def test_the_resolved_file_says_the_same_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ["output_dir=~/x", "data.train.path=~/thing/one.json"]
    config = load_config(folder / "beside" / "run.yaml", overrides)
    config.save_resolved(folder / "resolved.yaml")
    monkeypatch.setenv("HOME", "/")
    assert load_config(folder / "resolved.yaml") == config.model_copy(update={"name": config.name})
