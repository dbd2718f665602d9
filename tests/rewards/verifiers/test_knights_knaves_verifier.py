"""The verifier against written cases, the published answers, and arbitrary text."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.generators.knights_knaves.generator import generate_puzzles
from evenkeel.rewards.verifiers.knights_knaves.verifier import KnightsKnaves
from tests.paths import SHARED_DATA
from tests.rewards.bounded import score_in_bounded_time

TABLE = json.loads((Path(__file__).parent / "knights_knaves_cases.json").read_text(encoding="utf-8"))
PUBLISHED = SHARED_DATA / "kk_train.parquet"
NAMES = ("Zoe", "Amelia", "Ben")


@pytest.mark.parametrize("scheme", ["accuracy", "paper"])
@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_written_case(case, scheme):
    verdict = KnightsKnaves(scheme=scheme)(case["completion"], TABLE["references"][case["reference"]])

    assert verdict.score == case[scheme], f"{case['why']}; got: {verdict.reason}"
    assert verdict.reason


@pytest.fixture(scope="module")
def published_rows():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED.name} is not in shared/data beside the repository")
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(PUBLISHED).to_pylist()


@pytest.mark.parametrize("keys", [("statements", "names"), ("solution_text_format",)])
def test_a_published_answer_is_right_and_with_one_role_turned_wrong(published_rows, keys):
    verifier = KnightsKnaves()
    for number, published in enumerate(published_rows[::20]):
        reference = {key: published[key] for key in keys}
        lines = published["solution_text_format"].splitlines()
        turned = list(lines)
        turned[number % len(lines)] = _turned(turned[number % len(lines)])

        assert verifier(_completion(lines), reference).score == 1.0
        assert verifier(_completion(turned), reference).score == 0.0
    assert len(published_rows) == 4500


def _turned(line):
    name, role = line.rsplit(" ", 1)
    return f"{name} {'knave' if role == 'knight' else 'knight'}"


def _completion(lines):
    return "<think>Checked.</think><answer>" + "\n".join(lines) + "</answer>"


@pytest.mark.parametrize("scheme", ["accuracy", "paper"])
def test_generated_row_accepts_its_own_gold_and_no_other_assignment(scheme):
    verifier = KnightsKnaves(scheme=scheme)
    for puzzle in generate_puzzles(4, 20, seed=3):
        reference = {"names": list(puzzle.names), "statements": str(puzzle.statements)}
        gold = verifier.gold_completion(reference)
        assert verifier(gold, reference).score == verifier.full_score
        for roles in itertools.product(("knight", "knave"), repeat=4):
            lines = [f"{name} is a {role}" for name, role in zip(puzzle.names, roles, strict=True)]
            is_solution = tuple(role == "knight" for role in roles) == puzzle.solution
            assert (verifier(_completion(lines), reference).score == verifier.full_score) == is_solution


def test_numpy_names_are_read_and_there_is_no_gold_completion_without_a_solution():
    numpy = pytest.importorskip("numpy")
    reference = {**TABLE["references"]["three"], "names": numpy.array(NAMES, dtype=object)}
    assert KnightsKnaves()(KnightsKnaves().gold_completion(reference), reference).score == 1.0
    assert KnightsKnaves().gold_completion(TABLE["references"]["no solution"]) is None


@pytest.mark.parametrize(
    "block",
    [" " * 200_000, "Zoe" + " " * 9_000 + "x", "Zoe is a knight. " * 500, "<answer>" * 100_000, "</think>" * 100_000],
    ids=lambda block: f"{block[:20]!r}, {len(block)}",
)
def test_time_is_bounded(block):
    completion = f"<think></think><answer>{block}</answer>"
    assert score_in_bounded_time("knights_knaves", completion, TABLE["references"]["three"]) == 0.0


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=8), st.text(max_size=30))
def test_no_reference_raises(value, text):
    for reference in (
        value,
        {"statements": value, "names": ["Zoe", "Amelia"]},
        {"solution_text_format": value},
        {"names": value, "solution_text_format": text},
    ):
        assert KnightsKnaves()(text, reference).score in (None, 0.0)
