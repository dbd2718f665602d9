"""Brief demonstrations of Knights & Knaves: right where careful, of many lengths, on puzzles that no two sets share."""

import random

import pytest

from evenkeel.rewards import build_verifier
from evenkeel.rewards.generators.knights_knaves import generate_puzzles, row
from evenkeel.rewards.generators.knights_knaves.canonical import canonical_statements
from evenkeel.rewards.generators.rows import knights_knaves
from evenkeel.rewards.verifiers.knights_knaves import Puzzle, parse_statements
from evenkeel.trainer.run.config import load_config
from scripts.tiny_policy.architecture import tiny_tokenizer
from scripts.tiny_policy.brief_knights_knaves_demonstrations import noted_claims
from scripts.tiny_policy.make import prompt_text
from scripts.tiny_policy.tasks import TASKS
from tests.paths import ROOT

PUZZLES = generate_puzzles(3, 200, seed=3, names=["Ada", "Boris", "Clara"], style="compact")


def accuracy(*, careful: bool) -> float:
    rng, verifier = random.Random(0), build_verifier("knights_knaves")
    scores = [verifier(noted_claims(each, rng, careful=careful), row(each, 0)).score for each in PUZZLES]
    return sum(score == verifier.full_score for score in scores) / len(scores)


def test_careful_ones_are_right_and_hasty_ones_seldom() -> None:
    assert accuracy(careful=True) == 1
    assert 0.2 < accuracy(careful=False) < 0.45  # 1/8, about 1/4 or about 1/2 by how many claims were noted


def test_lengths_differ_and_fit_the_run_file() -> None:
    rng = random.Random(0)
    careful, hasty = ([noted_claims(each, rng, careful=kind).split() for each in PUZZLES] for kind in (True, False))
    assert {words.count("so") for words in careful} == {3}
    assert {words.count("so") for words in hasty} == {0, 1, 2}
    lengths = {len(words) + 1 for words in careful + hasty}  # and the end of the turn
    assert len(lengths) > 20
    assert max(lengths) <= 14 + 3 * 14 <= 64  # a note has at most 14 words: two claims of 3, and 8 more


def test_every_claim_is_noted_in_its_own_words() -> None:
    claims = (
        ("->", ("lying", 1), ("not", ("lying", 2))),
        ("<=>", ("lying", 0), ("lying", 2)),
        ("telling-truth", 0),
    )
    puzzle = Puzzle(("Ada", "Boris", "Clara"), claims, (True, True, True), "", "compact")  # nobody lies: all three hold
    assert noted_claims(puzzle, random.Random(0), careful=True) == (
        "<think> Ada if Boris knave then Clara not knave so Ada : knight . Boris Ada knave only Clara knave so Boris : "
        "knight . Clara Ada knight so Clara : knight . </think> "
        "<answer> Ada : knight Boris : knight Clara : knight </answer>"
    )


@pytest.mark.parametrize(
    ("name", "file", "different"),
    [
        ("knights_knaves_two", "docket_knights_two_base", [32, 48, 112]),  # each under eight namings
        pytest.param("knights_knaves_three", "docket_knights_three_base", [256, 1280, 6000], marks=pytest.mark.slow),
        pytest.param("knights_knaves_three", "laptop_knights_base", [256, 1280, 6000], marks=pytest.mark.slow),
    ],
)
def test_a_run_file_trains_on_puzzles_that_the_warm_up_has_under_no_names(
    name: str, file: str, different: list[int]
) -> None:
    task, data = TASKS[name](), load_config(ROOT / f"configs/sweeps/{file}.yaml").data
    sets = [task.held_out["knights_knaves"], task.pool, task.warm_up]
    seen = [
        {canonical_statements(parse_statements(each.reference["statements"])) for each in puzzles} for puzzles in sets
    ]
    assert [len(puzzles) for puzzles in seen] == different
    assert len(set().union(*seen)) == sum(different)

    options = [{**source.generator} for source in (data.train, data.test, data.test)]
    options[2]["part"] = "train"  # as the sweep tunes
    train, test, tuning = (
        knights_knaves(**{name: value for name, value in each.items() if name != "name"}) for each in options
    )
    assert [each["prompt"] for each in test] == [each.question for each in sets[0]]
    assert [each["prompt"] for each in tuning + train] == [each.question for each in task.pool]


@pytest.mark.parametrize("name", ["knights_knaves_two", pytest.param("knights_knaves_three", marks=pytest.mark.slow)])
def test_the_policy_knows_every_word(name: str) -> None:
    task = TASKS[name]()
    tokenizer, rng = tiny_tokenizer(task.vocabulary, task.tokens), random.Random(0)
    for puzzle in [*task.held_out["knights_knaves"], *task.pool, *task.warm_up]:
        text = puzzle.demonstrate(rng, rng.random() < 0.5) or ""
        assert tokenizer.unk_token_id not in tokenizer(prompt_text(tokenizer, puzzle.question) + text).input_ids
