"""The shipped tiny policies: they load, read their puzzles, and are as good and as bad as their cards say."""

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from scripts.tiny_policy.make import accuracy, completions, played
from scripts.tiny_policy.tasks import TASKS
from tests.paths import ROOT

FOLDERS = ROOT / "configs" / "tiny_policy"
LARGEST = 6_000_000  # bytes, of all folders together
NAMES = sorted(folder.name for folder in FOLDERS.iterdir() if folder.is_dir())
pytestmark = pytest.mark.parametrize("name", NAMES)


def test_small_and_with_its_card(name: str) -> None:
    assert sum(file.stat().st_size for file in FOLDERS.rglob("*") if file.is_file()) <= LARGEST
    card = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    assert f"python -m scripts.tiny_policy.make {name} --output configs/tiny_policy/{name}" in card
    assert "--seed" in card


@pytest.mark.slow
def test_sampled_it_leaves_something_to_learn(name: str) -> None:
    task = TASKS[name]()
    tokenizer = AutoTokenizer.from_pretrained(FOLDERS / name)
    model = AutoModelForCausalLM.from_pretrained(FOLDERS / name)
    for several in task.held_out.values():
        if task.calls_tools:
            _, scores = played(model, tokenizer, several[:64], sample=True, seed=0)
            assert 0.03 < sum(scores) / len(scores) < 0.8
            continue
        texts = completions(model, tokenizer, several[:64], sample=True, seed=0)
        assert 0.2 < accuracy(several[:64], texts) < 0.8
