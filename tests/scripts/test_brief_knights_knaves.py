"""Brief demonstrations of Knights & Knaves: right where careful, of many lengths, on puzzles that no two sets share."""

import random

import pytest

from rewards import build_verifier
from rewards.generators.knights_knaves import generate_puzzles, row
from rewards.generators.knights_knaves.canonical import canonical_statements
from rewards.generators.rows import knights_knaves
from rewards.verifiers.knights_knaves import Puzzle, parse_statements
from scripts.tiny_policy.architecture import tiny_tokenizer
from scripts.tiny_policy.brief_knights_knaves_demonstrations import trials
from scripts.tiny_policy.make import prompt_text
from scripts.tiny_policy.tasks import TASKS
from tests.paths import ROOT
from trainer.run.config import load_config

PUZZLES = generate_puzzles(3, 200, seed=3, names=["Ada", "Boris", "Clara"], style="compact")


def accuracy(*, careful: bool) -> float:
    rng, verifier = random.Random(0), build_verifier("knights_knaves")
    scores = [verifier(trials(each, rng, careful=careful), row(each, 0)).score for each in PUZZLES]
    return sum(score == verifier.full_score for score in scores) / len(scores)


def test_careful_ones_are_right_and_hasty_ones_seldom() -> None:
    assert accuracy(careful=True) == 1
    assert 0.15 < accuracy(careful=False) < 0.35  # one claim checked leaves about 4 of the 8 ways to give out roles


def test_lengths_differ_and_fit_the_run_file() -> None:
    rng = random.Random(0)
    careful, hasty = ({len(trials(each, rng, careful=kind).split()) + 1 for each in PUZZLES} for kind in (True, False))
    assert len(careful) > 10
    assert max(careful) <= 64  # with the end of the turn; at most 14, and twice 6 roles and three claims of 6 words
    assert hasty <= {24, 26, 30, 32}  # 14, 6 roles and a claim of 4 or 6 words, and 6 roles again where it disagrees


CLAIMS = (
    ("->", ("lying", 1), ("not", ("lying", 2))),
    ("<=>", ("lying", 0), ("lying", 2)),
    ("telling-truth", 0),
)
NO_KNAVES = Puzzle(("Ada", "Boris", "Clara"), CLAIMS, (True, True, True), "", "compact")  # nobody lies: all three hold


def test_the_first_claim_that_disagrees_turns_its_speaker() -> None:
    """From the solution, and from the two others where that one turn leads to it; Clara's claim is never the first."""
    answer = "</think> <answer> Ada : knight Boris : knight Clara : knight </answer>"
    right = (
        "Ada knight Boris knight Clara knight Ada Boris false Clara true yes Boris Ada false Clara false yes "
        "Clara Ada true yes"
    )
    thoughts = {trials(NO_KNAVES, random.Random(seed), careful=True) for seed in range(30)}
    assert {text.removeprefix("<think> ").removesuffix(f"{right} {answer}").strip() for text in thoughts} == {
        "",
        "Ada knave Boris knight Clara knight Ada Boris false Clara true no",
        "Ada knight Boris knave Clara knight Ada Boris true Clara true yes Boris Ada false Clara false no",
    }


@pytest.mark.slow
def test_the_run_file_trains_on_puzzles_that_the_warm_up_has_under_no_names() -> None:
    task, data = TASKS["knights_knaves_three"](), load_config(ROOT / "configs/sweeps/laptop_knights_base.yaml").data
    sets = [task.held_out["knights_knaves"], task.pool, task.warm_up]
    seen = [
        {canonical_statements(parse_statements(each.reference["statements"])) for each in puzzles} for puzzles in sets
    ]
    assert [len(puzzles) for puzzles in seen] == [256, 1280, 6000]
    assert len(set().union(*seen)) == 256 + 1280 + 6000

    train, test = (knights_knaves(**source.generator.options) for source in (data.train, data.test))
    tuning = knights_knaves(**data.test.generator.options | {"part": "train"})
    assert [each["prompt"] for each in test] == [each.question for each in sets[0]]
    assert [each["prompt"] for each in tuning + train] == [each.question for each in task.pool]


@pytest.mark.slow
def test_the_policy_knows_every_word() -> None:
    task = TASKS["knights_knaves_three"]()
    tokenizer, rng = tiny_tokenizer(task.vocabulary, task.tokens), random.Random(0)
    for puzzle in [*task.held_out["knights_knaves"], *task.pool, *task.warm_up]:
        text = puzzle.demonstrate(rng, rng.random() < 0.5) or ""
        assert tokenizer.unk_token_id not in tokenizer(prompt_text(tokenizer, puzzle.question) + text).input_ids
