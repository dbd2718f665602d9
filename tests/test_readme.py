"""The README's examples are run, and the files and commands that it names are there."""

import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from evenkeel.rewards import RewardFunction, Verdict, build_verifier
from evenkeel.rewards.references import trial_problem
from evenkeel.rewards.user_verifiers import UserVerifier, bounded
from evenkeel.trainer.algorithms.registry import KINDS, built_in
from tests.paths import ROOT
from tests.test_configs import run_of
from tests.test_links import PAGES
from tests.trainer.training import max_difference, moved, ours

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_three_examples_train_together(tiny_model, tmp_path: Path, monkeypatch):
    parts = BLOCKS[1:]  # tests/test_package.py runs the first
    assert len(parts) == 3
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 10 for block in BLOCKS)
    (tmp_path / "my_parts.py").write_text("\n\n".join(parts))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_parts", raising=False)  # that of another page

    verifier = build_verifier("my_parts:ends_with_reference")
    assert verifier("so it is 7", "7") == Verdict(1.0, "7", "the last word")
    assert verifier("so it is 7", 7).score is None
    reward = RewardFunction(verifier, "ends_with_reference")

    def ends_with_some_digit(prompts, completions, **keywords):
        words = [(completion[0]["content"].split() or [""])[-1] for completion in completions]
        references = [word if word.isdigit() else "no" for word in words]
        return reward(prompts=prompts, completions=completions, reference=references)

    strategies = {
        "advantage": {"name": "my_parts:median_baseline", "scale": 2.0},
        "token_weight": {"name": "my_parts:only_surprising", "threshold": 0.5},
    }
    trainer = ours(tiny_model, tmp_path / "run", strategies=strategies, reward=ends_with_some_digit, max_steps=3)
    assert moved(trainer, tiny_model) > 1e-3


def test_the_example_of_a_verifier_passes_the_trial_of_a_run(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    verifier = bounded(build_verifier("own_verifier:last_number"))
    assert isinstance(verifier, UserVerifier)
    assert trial_problem(verifier, ["12", "7"]) == ""


def test_a_step_by_hand_is_the_trainers(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    step = import_module("one_step")
    torch.manual_seed(0)
    model, *batch = step.by_hand()
    by_hand, by_trainer = (SimpleNamespace(model=each) for each in (model, step.by_trainer(*batch, str(tmp_path))))
    assert moved(by_hand, step.POLICY) > 1e-3 > 1e-6 > max_difference(by_hand, by_trainer)


def commands_of(page: Path) -> list[list[str]]:
    """The words of every ``evenkeel …`` line in the shell blocks of a page, without what is piped or redirected."""
    blocks = re.sub(r" \\\n\s*", " ", "\n".join(re.findall(r"```bash\n(.*?)```", page.read_text(), flags=re.DOTALL)))
    lines = re.findall(r"^evenkeel (.+)$", blocks, flags=re.MULTILINE)
    return [shlex.split(re.split(r" [>|] ", line)[0], comments=True) for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_shell_block_is_one(page: Path):
    files = [run_of(*words) for words in commands_of(page)]  # a parser that refuses its words raises SystemExit
    if page == ROOT / "README.md":
        there = [file for file in files if file is not None and file.name != "my_run.yaml"]
        assert len(there) >= 6
        assert all(file.exists() for file in there)


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_strategies_names_every_built_in_one_once(kind):
    rows = re.findall(rf"^\| \*\*{kind}\*\* \| [^|]+ \| (.+) \|$", README, flags=re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(built_in(kind))
