r"""8,237 pairs of a gold and an answer, labelled by mathematics before they were scored.

``right`` says whether the answer is the gold; ``refused`` says why a right one scores 0 all the same. The first 532 lie
in ``rewards/bench/audit/labelled_math.json``: `evenkeel audit` asks them of anyone's function. The class *second
table* was written after the rules, to see how far they reach: 17 of its 198 right answers were refused and 1 of its 93
wrong ones was paid before it was learned from; *third look* holds what was found by hand after that. Three more were
written without sight of these: of *fourth look* 14 of 182 right answers were refused, of *corners* (notation chosen to
be hard) 102 of 382, of *fifth look* (written after those had been learned from) 7 of 290; of their 552 wrong answers 2
were paid, both in *corners*. *Sixth look* tries to be paid by what was added for these; 2 of its wrong ones were.
``learned_pairs.json`` holds 1,157 more, each with the reason for its label: before they were learned from, 240 of 533
right answers were refused and 52 of 624 wrong ones paid. ``learned_prose_and_units_pairs.json`` holds 353 more:
sentences, words and letters behind a number, evaluations that fail. Of its first 136, 12 of 39 right answers were
refused and 40 of 97 wrong ones paid; the classes *tried to be paid* were written against the rules made from these.
``learned_letters_and_forms_pairs.json`` holds 663: of the first 270, 41 of 120 right answers were refused and 54 of 150
wrong ones paid; the rest was written against the rules made from these. ``learned_attack_pairs.json`` holds 357: of the
first 158, 6 of 76 right answers were refused and none of 82 wrong ones paid; the class *attacks on letters, unknowns
and words* was written before the rules for it, and 4 of its wrong answers were paid then.
``learned_what_belongs_together_pairs.json`` holds what a rule tore apart: an exponent and its brace (8 of its 13 right
answers were refused before the guard measured exponents); units in an open brace, letters that the parser lacks, units
in Chinese, a choice with its text, and what belongs to a form: names, quantifiers, percent, constants, functions. Its
classes *open set* were written by an author who did not write the rules; before these were learned from, 11 of 126
right answers were refused, none of 127 wrong ones and 15 of 79 written against the code paid; *what is said around a
value* and *boxes that the text rejects* hold what else was tried at the rules for these.
``learned_real_golds_pairs.json`` is by another author, on golds of real data sets: before it was learned from, 44 of
255 right answers were refused and none of 260 wrong ones paid.
``learned_everyday_pairs.json`` holds answers as models box them, to golds of real data sets and of every form, and what
was written against the rules made from these two: of 439 right answers 57 were refused when they were first scored, of
312 wrong ones 26 were paid; what can be argued about was dropped. The last 879 came with the rules for clauses.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards.verifiers.math_answer import MathAnswer
from tests.paths import ROOT

HERE = Path(__file__).parent
FILES = [ROOT / "rewards/bench/audit/labelled_math.json", HERE / "labelled_pairs.json"]
FILES += sorted(HERE.glob("learned_*pairs.json"))
PAIRS = [pair for file in FILES for pair in json.loads(file.read_text(encoding="utf-8"))]
CLASSES = sorted({pair["class"] for pair in PAIRS})
SLOW_CLASSES = {
    "functions",
    "polynomials and expressions",
    "second table",
    "fourth look",
    "corners",
    "fifth look",
    "sixth look",
    "constants",
    "near misses",
    "factored and expanded",
    "equations between numbers",
    "before the equals sign",
    "other names and forms",
    "attempts to be paid",
    "answers that fail to evaluate",
    "evaluations that fail, tried to be paid",
    "letters that need not commute",
    "precision without proof",
    "answers of all kinds",
    "forms of every kind",
    "tried to be paid after the rules",
    "attacks on letters, unknowns and words",
    "sampled: expression",
    "own: functions and antiderivatives",
    "natural",
    "natural, all forms",
    "letters",
}


def written(pair: dict[str, Any]) -> str:
    return pair.get("completion") or f"Therefore it is $\\boxed{{{pair['answer']}}}$."


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW_CLASSES else name for name in CLASSES]
)
def test_each_pair_is_scored_as_labelled(name):
    pairs = [pair for pair in PAIRS if pair["class"] == name]
    verdicts = MathAnswer(workers=1).judge_all([written(pair) for pair in pairs], [pair["gold"] for pair in pairs])
    found = {(pair["gold"], written(pair)): verdict.score for pair, verdict in zip(pairs, verdicts, strict=True)}
    expected = {(pair["gold"], written(pair)): float(pair["right"] and "refused" not in pair) for pair in pairs}
    assert found == expected


def test_the_table_covers_what_it_claims():
    count = defaultdict(int)
    for pair in PAIRS:
        count["right" if pair["right"] else "wrong"] += 1
        count["refused"] += "refused" in pair
    assert dict(count) == {"right": 4099, "wrong": 4138, "refused": 327}
    assert len({(pair["gold"], written(pair)) for pair in PAIRS}) == len(PAIRS)
