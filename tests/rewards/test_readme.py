"""The example of the verifiers' README is run, its table names what ships, and what it lists is there."""

import re
import sys
from pathlib import Path

import pytest

from evenkeel.rewards import RewardFunction, build_verifier
from evenkeel.rewards.parts import VERIFIERS
from evenkeel.rewards.references import check_rewards
from evenkeel.rewards.user_verifiers import UserVerifier, bounded
from evenkeel.rewards.user_verifiers.traits import timeout_of
from tests.paths import ROOT

README = (ROOT / "rewards" / "README.md").read_text()


def test_the_example_is_taken_and_judges_in_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "my_parts.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_parts", raising=False)  # that of another page
    assert getattr(build_verifier("my_parts:judge"), "is_async", False)
    verifier = build_verifier("my_parts:ends_with_reference")
    own = bounded(verifier)
    assert isinstance(own, UserVerifier)
    assert timeout_of(verifier) == 10
    assert check_rewards({"mine": verifier}, {"mine": None}, ["7", "8"], None, "data.train") == [0, 1]
    rows = {"prompts": [""] * 3, "completions": ["it is 7", "it is 8", "it is 7"], "reference": ["7", "7", 7]}
    assert RewardFunction(verifier, "mine")(**rows) == [1.0, 0.0, None]


def test_every_verifier_that_ships_is_in_the_table_and_what_is_listed_exists() -> None:
    assert [name for name in VERIFIERS if f"`{name}`" not in README] == []
    listed = re.findall(r"^    ([\w/.]+)  ", README, flags=re.MULTILINE)
    assert len(listed) >= 9
    assert [name for name in listed if not (ROOT / "rewards" / name).exists()] == []
