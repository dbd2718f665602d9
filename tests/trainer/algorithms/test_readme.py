"""The README of the strategies: its examples are run, and its tables are those of the code."""

import re
from pathlib import Path

import pytest
import torch

from evenkeel.trainer.algorithms.contract import ADVANTAGE, TOKEN_WEIGHT, Traits
from evenkeel.trainer.algorithms.registry import find_strategy, signal_listing, strategy_listing
from evenkeel.trainer.algorithms.trial import tried
from tests.paths import ROOT
from tests.trainer.training import moved, ours

FOLDER = ROOT / "trainer/algorithms"
README = (FOLDER / "README.md").read_text()


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples as the module ``readme_strategies``."""
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "readme_strategies.py").write_text("\n\n".join(blocks))
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_function_keeps_the_contract_and_bounds(examples):
    strategy = tried(find_strategy(ADVANTAGE, {"name": "readme_strategies:bounded", "bound": 0.5}))
    rewards = torch.tensor([1.0, 0.0, 0.0, float("nan")])  # mean 1/3: 2/3 is cut to 1/2
    result = strategy({"rewards": rewards, "group_size": 4})
    torch.testing.assert_close(result, torch.tensor([0.5, -1 / 3, -1 / 3, float("nan")]), equal_nan=True)


def test_the_class_remembers_and_is_restored(examples):
    strategy = tried(find_strategy(ADVANTAGE, "readme_strategies:RunningBaseline"))
    ones = {"rewards": torch.ones(4)}
    assert strategy(ones).tolist() == [1.0] * 4  # the trial on the tiny example was forgotten
    torch.testing.assert_close(strategy(ones), torch.full((4,), 0.9))  # mean .1 · 1
    other = find_strategy(ADVANTAGE, {"name": "readme_strategies:RunningBaseline", "decay": 0.5})
    other.function.load_state_dict(strategy.function.state_dict())
    torch.testing.assert_close(other(ones), torch.full((4,), 0.81))  # mean .9 · .1 + .1 · 1


def test_a_class_and_a_weight_that_asks_for_entropies_train_together(examples, tiny_model, tmp_path: Path):
    assert "entropies" in find_strategy(TOKEN_WEIGHT, "readme_strategies:undecided").signals
    strategies = {"advantage": "readme_strategies:RunningBaseline", "token_weight": "readme_strategies:undecided"}
    trainer = ours(tiny_model, tmp_path / "run", strategies=strategies, max_steps=1)
    assert moved(trainer, tiny_model) > 1e-3


def test_the_table_of_strategies_is_the_one_that_is_printed():
    assert strategy_listing() in README, "paste: evenkeel strategies"


def test_every_signal_and_trait_is_explained():
    assert signal_listing() in README, "paste: evenkeel strategies signals"
    assert not [trait for trait in Traits.__dataclass_fields__ if f"| `{trait}` |" not in README]
