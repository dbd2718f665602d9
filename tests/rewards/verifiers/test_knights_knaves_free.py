"""``layout: free``: what models write who were not told how; and what still states no solution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.knights_knaves import KnightsKnaves
from evenkeel.rewards.verifiers.knights_knaves.answer import parse_free

NAMES = ["Zoe", "Amelia", "Ben"]
REFERENCE = {"names": NAMES, "solution_text_format": "(1) Zoe is a knight\n(2) Amelia is a knave\n(3) Ben is a knave"}
RIGHT = [
    "Knights: Zoe. Knaves: Amelia, Ben",
    "Knights: Zoe\nKnaves: Amelia, Ben",
    "Knights: Zoe; Knaves: Amelia and Ben",
    "Knights: Zoe, Knaves: Amelia & Ben.",
    "**Knights:** Zoe\n**Knaves:** Amelia, Ben",
    "Knights:\n- Zoe\n\nKnaves:\n- Amelia\n- Ben\n",
    "The knight is Zoe and the knaves are Amelia and Ben.",
    "Zoe is a knight, and Amelia and Ben are knaves.",
    "Amelia and Ben are both knaves. Zoe is a knight.",
    "Therefore, Zoe is a knight, Amelia is a knave, and Ben is a knave.",
    "So Zoe is the knight; Amelia, Ben are the knaves",
    "We conclude that Zoe is a knight and Amelia is a knave and Ben is a knave.",
    "Here is the final answer:\n(1) Zoe is a knight\n(2) Amelia is a knave\n(3) Ben is a knave",
    "Based on the above reasoning, the roles are as follows:\nZoe: knight\nAmelia: knave\nBen: knave",
    "### Final answer:\nZoe - knight\nAmelia - knave\nBen - knave",
    "Zoe is a knight. Amelia and Ben are knaves. Therefore, Amelia is a knave.",
]
NOT_READ = [
    "It is false that (1) Zoe is a knight\n(2) Amelia is a knave\n(3) Ben is a knave",
    "(1) Zoe is a knight\n(2) Amelia is a knave\n(3) Ben is a knave\nActually swap: each of them is the opposite.",
    "Knights: Zoe. Knaves: Amelia, Ben. Actually swap: Zoe and Ben",
    "None of these hold: Zoe is a knight, Amelia is a knave, Ben is a knave",
    "It is not true that: Knights: Zoe. Knaves: Amelia, Ben",
    "If Zoe is a knight then Amelia and Ben are knaves",
    "Suppose: Zoe is a knight. Then Amelia and Ben are knaves",
    "The opposite is the solution: Zoe is a knight, Amelia is a knave, Ben is a knave",
    "Knights: Zoe or Amelia. Knaves: Ben",
    "Knights: Zoe, Amelia are knaves, Ben is a knave",
    "Zoe is a knight. Amelia and Ben are not knights",
    "Zoe is a knight. Amelia and Ben are knaves and knights",
    "Zoe is a knight. Amelia and Ben are knaves. Ben is a knight",
    "Zoe is a knight. Amelia and Ben are knaves. In fact Zoe is a liar",
    "Knights: Zoe. Knaves: Amelia, Ben, Carl",
    "Knights: Mary-Zoe. Knaves: Amelia, Ben",
    "Knights: none of Zoe. Knaves: Amelia, Ben",
    "Knights: Zoe. Knaves: Amelia",
    "Knights: Zoe, Amelia, Ben. Knaves: Zoe, Amelia, Ben",
    "Is Zoe a knight? Knights: Zoe. Knaves: Amelia, Ben",
    "",
]


def written(answer: str) -> str:
    return f"<think>Checked.</think><answer>{answer}</answer>"


@pytest.mark.parametrize("answer", RIGHT)
def test_a_solution_in_a_free_layout_is_read_where_that_is_asked_for(answer: str) -> None:
    verdict = KnightsKnaves(layout="free")(written(answer), REFERENCE)
    assert verdict.score == 1.0, verdict.reason
    assert KnightsKnaves()(written(answer), REFERENCE).score == 0.0


@pytest.mark.parametrize("scheme", ["accuracy", "paper"])
@pytest.mark.parametrize("answer", NOT_READ)
def test_what_states_no_solution_is_not_read(answer: str, scheme: str) -> None:
    verdict = KnightsKnaves(scheme=scheme, layout="free")(written(answer), REFERENCE)  # type: ignore[arg-type]
    assert verdict.score is not None
    assert verdict.score <= 0
    assert verdict.answer is None
    assert isinstance(parse_free(answer, NAMES), str)


@given(st.text(alphabet="ZoeAmliaBn knightsve:,.\nisarno", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = parse_free(text, NAMES)
    assert isinstance(found, str) or len(found) == 3


def test_time_is_linear_enough() -> None:
    for piece in ("\n", " ", "zoe, ", "knights: ", "zoe and ", "so ", "the "):
        assert isinstance(parse_free(piece * (10_000 // len(piece)), NAMES), str)
