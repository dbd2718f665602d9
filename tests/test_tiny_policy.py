"""The shipped tiny policies: they load, read their puzzles, and are as good and as bad as their cards say."""

import json
import random
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from scripts.tiny_policy.games_demonstrations import Messages
from scripts.tiny_policy.make import (
    accuracy,
    completions,
    earned,
    played,
    tokenized,
)
from scripts.tiny_policy.tasks import TASKS, Puzzle, Task
from tests.paths import ROOT

FOLDERS = ROOT / "configs" / "tiny_policy"
LARGEST = 6_000_000  # bytes, of all folders together

pytestmark = pytest.mark.parametrize("name", sorted(folder.name for folder in FOLDERS.iterdir() if folder.is_dir()))
_tasks: dict[str, Task] = {}


@pytest.fixture
def task(name: str) -> Task:
    if name not in _tasks:
        _tasks[name] = TASKS[name]()
    return _tasks[name]


def _demonstrations(task: Task) -> list[tuple[Puzzle, str | Messages]]:
    rng = random.Random(0)
    puzzles = [puzzle for several in task.held_out.values() for puzzle in several[:50]]
    shown = [(puzzle, puzzle.demonstrate(rng, careful)) for puzzle in puzzles for careful in (True, False)]
    return [(puzzle, text) for puzzle, text in shown if text is not None]


def test_small_and_with_its_card(name: str) -> None:
    assert sum(file.stat().st_size for file in FOLDERS.rglob("*") if file.is_file()) <= LARGEST
    card = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    assert f"python -m scripts.tiny_policy.make {name} --output configs/tiny_policy/{name}" in card
    assert "--seed" in card


def test_loads_in_float32(name: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(FOLDERS / name)
    assert model.dtype == torch.float32
    assert model.num_parameters() < 1_000_000


def test_no_unknown_words_and_nothing_lost_in_decoding(name: str, task: Task) -> None:
    tokenizer = AutoTokenizer.from_pretrained(FOLDERS / name)
    for puzzle, text in _demonstrations(task):
        ids, labels = tokenized(tokenizer, puzzle, text)
        assert tokenizer.unk_token_id not in ids
        said = text if isinstance(text, str) else "".join(map(_written, text))
        assert tokenizer.decode([label for label in labels if label >= 0], skip_special_tokens=True) == said


def _written(message: dict[str, Any]) -> str:
    """What the policy writes of ``message`` of a game."""
    if "tool_calls" not in message:
        return message["content"] if message["role"] == "assistant" else ""
    (call,) = (each["function"] for each in message["tool_calls"])
    ((key, value),) = call["arguments"].items()
    return f"<call>{call['name']}({key}={json.dumps(value)})</call>"


def test_the_three_uses_share_no_question(name: str, task: Task) -> None:
    held_out = {puzzle.question for several in task.held_out.values() for puzzle in several}
    pool, warm_up = ({puzzle.question for puzzle in puzzles} for puzzles in (task.pool, task.warm_up))
    assert not held_out & pool
    assert not warm_up & (held_out | pool)
    assert len(pool) == task.pool_size * len(task.puzzles)


def test_careful_demonstrations_are_right(name: str, task: Task) -> None:
    rng = random.Random(0)
    for puzzle in random.Random(1).sample(task.pool, 100):
        text = puzzle.demonstrate(rng, True)
        if isinstance(text, list):
            assert _earned(puzzle, text) == 1.0
        else:
            assert text is None or puzzle.verifier(text, puzzle.reference).score == puzzle.verifier.full_score


def _earned(puzzle: Puzzle, conversation: Messages) -> float | None:
    """What the calls of ``conversation`` earn, played again; each is answered as in it."""
    environment = puzzle.environment()
    environment.reset(reference=puzzle.reference)
    for asked, answered in zip(conversation[:-1:2], conversation[1::2], strict=True):
        call = asked["tool_calls"][0]["function"]
        assert getattr(environment, call["name"])(**call["arguments"]) == answered["content"]
    return earned(environment, puzzle, conversation)


@pytest.mark.slow
def test_sampled_it_leaves_something_to_learn(name: str, task: Task) -> None:
    tokenizer = AutoTokenizer.from_pretrained(FOLDERS / name)
    model = AutoModelForCausalLM.from_pretrained(FOLDERS / name)
    for several in task.held_out.values():
        if task.calls_tools:
            _, scores = played(model, tokenizer, several[:64], sample=True, seed=0)
            assert 0.03 < sum(scores) / len(scores) < 0.8
            continue
        texts = completions(model, tokenizer, several[:64], sample=True, seed=0)
        assert 0.2 < accuracy(several[:64], texts) < 0.8
