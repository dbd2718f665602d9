"""The package as its users have it: its names, its command, a user's own files of the same names beside it."""

import os
import re
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import evenkeel
from evenkeel.trainer.command import configs
from evenkeel.trainer.command.__main__ import main as command
from evenkeel.trainer.run.config import load_config
from tests.paths import ROOT

STABLE = ["CONFIGS", "Engine", "Evaluation", "GENERATORS", "Guards", "RLVRTrainer", "RewardFunction", "Speed"]
STABLE += ["Verdict", "Verifier", "__version__", "build_verifier", "reward_functions", "strategies", "traits"]
"""A name leaves this list only with a new major version."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's: his files have the names of our folders, and fail where they are imported."""
    for name in ("rewards.py", "trainer.py", "scripts.py"):
        (tmp_path / name).write_text("raise ImportError('the user’s own file')\n")
    (tmp_path / "configs").mkdir()
    return tmp_path


def ended(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def ran(folder: Path, *command: str) -> str:
    variables = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}  # transformers prints a line of it
    done = ended(folder, sys.executable, *command, **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_what_is_exported_is_what_is_promised():
    assert evenkeel.__all__ == STABLE
    assert all(getattr(evenkeel, name) is not None for name in STABLE)
    with pytest.raises(AttributeError, match="RLVRtrainer"):
        _ = evenkeel.RLVRtrainer


@pytest.mark.parametrize("words", ["--help", "verifiers --help"])
def test_a_command_whose_reader_leaves_ends_quietly(folder: Path, words: str):
    command = ["env", "PYTHONUNBUFFERED=", sys.executable, "-m", "evenkeel", *words.split()]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


LONG = "a" * 300
LINES = [f"train {LONG}", f"train data.system_prompt={LONG}", f"launch {LONG}", f"launch --config_file {LONG} x"]
LINES += [f"check {LONG}", f"export {LONG} --to x", "export . --to .", "evaluate", "configs copy quickstart large.yaml"]


@pytest.mark.parametrize("line", LINES)
def test_what_cannot_be_read_or_written_is_refused(line: str, folder: Path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["evenkeel"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000 if "large" in line else soft, hard))  # as a full disk
    with suppress(SystemExit):
        assert command(line.split()) == 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = "".join(capsys.readouterr())
    assert len(said.strip()) > 10
    assert ("large" in said) == ("large" in line)
    assert "unexplained" not in said
    assert "key=value" not in said


def test_a_shipped_file_is_copied_with_its_base(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    assert configs.main(["copy", "countdown/lopti", "mine.yaml"]) == 0
    copied, same = (folder / "mine.yaml").read_text(), ["name=a", "output_dir=b"]
    assert load_config("mine.yaml", same) == load_config(evenkeel.CONFIGS / "countdown/lopti.yaml", same)
    assert (copied.split("\n")[0], "extends:" in copied) == ("# yaml-language-server: $schema=run.schema.json", False)
    assert (folder / "run.schema.json").read_bytes() == (evenkeel.CONFIGS / "run.schema.json").read_bytes()
    assert load_config("mine.yaml").model.name_or_path == str(evenkeel.CONFIGS / "tiny_policy" / "countdown")
    assert configs.main(["copy", "countdown/lopti", "mine.yaml"]) == 2, "a file of the user's is not written over"
    assert configs.main(["copy", "countdown/loptt"]) == 2


def refused(folder: Path, *command: str, **variables: str) -> str:
    """The last line of what is said."""
    done = ended(folder, *command, **variables)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_beside_a_checkout_another_package_called_evenkeel_is_refused(folder: Path):
    """It comes first on the path, and our code runs where a part of it is imported."""
    for name, text in {
        "evenkeel/__init__.py": "",
        "evenkeel-0.1.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evenkeel\nVersion: 0.1.1\n",
        "evenkeel-0.1.1.dist-info/RECORD": "evenkeel/__init__.py,,\n",
    }.items():
        (folder / "installed" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "installed" / name).write_text(text)
    path = str(folder / "installed")
    said = f"ImportError: {path}/evenkeel belongs to the distribution evenkeel 0.1.1"
    assert refused(folder, sys.executable, "-c", "import evenkeel.trainer", PYTHONPATH=path).startswith(said)
    command = str(Path(sys.executable).with_name("evenkeel"))
    assert refused(folder, command, "--version", PYTHONPATH=path).startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minimal.py", "own_strategy.py"])
def test_an_example_trains(folder: Path, name: str):
    printed = ran(folder, str(ROOT / "examples" / name))
    if name == "minimal.py":
        first, last = map(float, re.findall(r"0\.\d\d", printed.splitlines()[-1]))
        assert first > 0.2, "the policy does not know its task"
        assert last > first


def test_the_example_of_a_verifier_judges_beside_a_users_own_files(folder: Path):
    """Editable, as this checkout is."""
    shutil.copy(ROOT / "examples" / "own_verifier.py", folder)
    assert ran(folder, "own_verifier.py") == ("{'It is 12.': 1.0, 'First 12, then 13.': 0.0, 'I do not know.': 0.0}\n")


PLAIN_SCRIPT = (ROOT / "examples" / "plain_trl_script.py").read_text()
FIRST_BLOCK = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]


@pytest.mark.slow
@pytest.mark.parametrize("text", [PLAIN_SCRIPT, FIRST_BLOCK], ids=["example", "readme"])
def test_the_plain_script_of_trl_trains(text: str, folder: Path, tiny_model: Path):
    """With the tiny model and rows of its own in place of the hub's."""
    rows = "Dataset.from_list([{'prompt': [{'role': 'user', 'content': 'a b'}], 'solution': '1'}] * 8)"
    arguments = "use_cpu=True, bf16=False, max_steps=1, max_completion_length=8, report_to='none', save_strategy='no'"
    for there, here in {
        "from datasets import load_dataset": "from datasets import Dataset\nfrom trl import GRPOConfig",
        'load_dataset("trl-lib/DeepMath-103K", split="train")': rows,
        '"Qwen/Qwen2.5-0.5B-Instruct"': repr(str(tiny_model)),
        "train_dataset=": f"args=GRPOConfig('out', {arguments}), train_dataset=",
    }.items():
        assert there in text
        text = text.replace(there, here)
    (folder / "script.py").write_text(text)
    ran(folder, "script.py")
    assert len([line for line in PLAIN_SCRIPT.splitlines() if "# " in line]) == 3, "lines that differ from TRL's"
