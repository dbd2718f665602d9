"""The 500 problems of MATH-500: their answers accept themselves, and four tricks that pay elsewhere do not pay here."""

import re
from functools import cache
from typing import Any

import pandas
import pytest

from evenkeel.rewards.verifiers.math_answer import MathAnswer
from evenkeel.rewards.verifiers.math_answer.reading import read
from tests.paths import SHARED_DATA
from tests.rewards.references import check_references

NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)")


@cache
def rows() -> list[dict[str, Any]]:
    path = SHARED_DATA / "math500.parquet"
    if not path.exists():
        pytest.skip("shared/data/math500.parquet is not beside this checkout")
    return list(pandas.read_parquet(path).to_dict("records"))


def golds() -> list[str]:
    return [row["answer"] for row in rows()]


def paid(pairs: list[tuple[str, str]]) -> set[tuple[str, str]]:
    verdicts = MathAnswer(workers=1).judge_all(
        [f"\\boxed{{{answer}}}" for _, answer in pairs], [gold for gold, _ in pairs]
    )
    assert all(verdict.score is not None for verdict in verdicts)
    return {pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict.score}


def unit_dropped(gold: str) -> str:
    """The plain number in ``gold``, where all the rest is a unit or a name: that much may be left out."""
    return re.sub(r"\^\\circ|\\text\{[a-z ]+\}|\\mbox\{[a-z ]+\}(\^2)?|\\\$|x=", "", gold).strip()


def test_every_gold_accepts_itself():
    check_references(MathAnswer(), golds(), "math500")


SPELLINGS = {
    "full stop": lambda gold: gold + ".",
    "dollars": lambda gold: f"${gold}$" if "$" not in gold else gold,
    "display": lambda gold: "\\displaystyle " + gold,
    "sentence": lambda gold: "\\text{The answer is } " + gold,
    "name": lambda gold: gold if "=" in gold or "\\in" in gold else f"{'k' if 'x' in gold else 'x'} = {gold}",
    "dfrac": lambda gold: re.sub(r"\\d?frac", r"\\dfrac", gold),
    "slash": lambda gold: re.sub(r"^(-?)\\d?frac\{(\w+)\}\{(\w+)\}$", r"\1\2/\3", gold),
    "mathrm": lambda gold: re.sub(r"\\(text|mbox)\{", r"\\mathrm{", gold),
    "bare words": lambda gold: re.sub(r"\\(?:text|mbox)\{([^{}]*)\}", r"\1", gold),
    "brackets": lambda gold: gold.replace("pmatrix", "bmatrix").replace("\\left", "").replace("\\right", ""),
    "Unicode": lambda gold: re.sub(r"\\sqrt\{(\d+)\}", r"√\1", gold.replace("\\pi", "π").replace("-", "−")).replace(
        "^\\circ", "°"
    ),
    "decimal point": lambda gold: gold + ".0" if re.fullmatch(r"-?\d+", gold) else gold,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_gold_is_accepted_in_another_spelling(name):
    pairs = [(gold, SPELLINGS[name](gold)) for gold in golds() if SPELLINGS[name](gold) != gold]
    assert set(pairs) - paid(pairs) == set()


def test_a_number_taken_out_of_the_gold_does_not_pay():
    truncated = {(gold, number) for gold in golds() for number in NUMBER.findall(gold)}
    wrong = [(gold, number) for gold, number in sorted(truncated) if read(number).form != read(unit_dropped(gold)).form]
    assert len(wrong) > 290
    assert paid(wrong) == set()


@pytest.mark.parametrize("steps", [(7,), pytest.param((1, 250), marks=pytest.mark.slow)], ids=str)
def test_another_rows_answer_does_not_pay(steps):
    answers = golds()
    pairs = [(gold, answers[(row + step) % 500]) for row, gold in enumerate(answers) for step in steps]
    wrong = [(gold, other) for gold, other in pairs if read(unit_dropped(gold)).form != read(unit_dropped(other)).form]
    assert len(wrong) > 460 * len(steps)
    assert paid(wrong) == set()


@pytest.mark.parametrize("step", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_a_neighbouring_number_does_not_pay(step):
    def stepped(first: re.Match[str]) -> str:
        return f"{float(first[0]) + step:g}"

    pairs = {(gold, NUMBER.sub(stepped, gold, count=1)) for gold in golds() if NUMBER.search(gold)}
    assert len(pairs) > 250
    assert paid(sorted(pairs)) == set()


def test_an_appendix_does_not_pay():
    appendices = (" \\text{ (or 4)}", " (or 4)", " \\text{ or } 4", " \\text{ or something else}", ", 4", "?")
    assert paid([(gold, gold + appendix) for gold in golds() for appendix in appendices]) == set()


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_an_expression_copied_from_the_question_does_not_pay(every):
    """Six of the 3,893 formulas and numbers in the questions are the answer itself, and in its form."""
    pairs = []
    for row in rows()[::every]:
        question = row["prompt"][-1]["content"]
        formulas = re.findall(r"\$([^$]+)\$|\\\[(.+?)\\\]", question, re.DOTALL)
        pieces = {piece for formula in formulas for piece in (*formula, *re.split(r"(?<!\\)=", formula[0]))}
        pieces |= set(NUMBER.findall(question))
        pairs += [(row["answer"], piece.strip()) for piece in pieces if piece.strip() not in ("", row["answer"])]
    assert len(pairs) > 3500 / every
    assert {(gold, answer.rstrip(".")) for gold, answer in paid(pairs)} <= {
        ("0", "0"),
        ("\\frac{1}{2}", "0.5"),
        ("4.5", "\\frac{9}{2}"),  # three ask for a decimal, as hardly any other question with such a gold does
        ("0.15", "\\frac{3}{20}"),
        (".35625", "\\frac{57}{160}"),
        ("1", "1"),
        ("12", "12^{\\mathrm{th}}"),
    }
