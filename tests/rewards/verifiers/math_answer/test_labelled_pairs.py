r"""8,237 pairs of a gold and an answer, labelled by mathematics before they were scored.

``right`` says whether the answer is the gold; ``refused`` says why a right one scores 0 all the same. The first 532 lie
in ``rewards/bench/audit/labelled_math.json``: `evenkeel audit` asks them of anyone's function. When they were first
scored, before anything was learned from them, of these right answers were refused and wrong ones paid:

    ``labelled_pairs.json``: second table                  17 of 198      1 of 93
    … fourth look, corners, fifth look                    123 of 854      2 of 552
    … sixth look, which tries to be paid                                  2
    ``learned_pairs.json``                                240 of 533     52 of 624
    ``learned_prose_and_units_pairs.json``, first 136      12 of 39      40 of 97
    ``learned_letters_and_forms_pairs.json``, first 270    41 of 120     54 of 150
    ``learned_attack_pairs.json``, first 158                6 of 76       0 of 82
    ``learned_what_belongs_together_pairs.json``: open set 11 of 126     15 of 206
    ``learned_real_golds_pairs.json``                      44 of 255      0 of 260
    ``learned_everyday_pairs.json``, first 751             57 of 439     26 of 312

The rest was written against the rules made from these, or found by hand later. *Second table* was written after the
rules, to see how far they reach; *fourth look*, *corners* and *fifth look* without sight of the others; *open set* and
the real golds by another author. What can be argued about was dropped.
"""

import json
import re
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
SLOW_CLASSES = re.split(
    r";\s+",
    """functions; polynomials and expressions; second table; fourth look; corners; fifth look; sixth look;
    constants; near misses; factored and expanded; equations between numbers; before the equals sign;
    other names and forms; attempts to be paid; answers that fail to evaluate;
    evaluations that fail, tried to be paid; letters that need not commute; precision without proof;
    answers of all kinds; forms of every kind; tried to be paid after the rules;
    attacks on letters, unknowns and words; sampled: expression; own: functions and antiderivatives; natural;
    natural, all forms; letters""",
)


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
    assert dict(count) == {"right": 4099, "wrong": 4138, "refused": 326}
    assert len({(pair["gold"], written(pair)) for pair in PAIRS}) == len(PAIRS)
