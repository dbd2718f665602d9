"""Single values compared without algebra: numbers with their units, ratios, times of day."""

import re

from rewards.verifiers.math_answer.forms import Expression, Number
from rewards.verifiers.math_answer.units import DEGREE, PERCENT


def same_number(gold: Number, answer: Number) -> bool:
    if gold.unit == answer.unit:
        return gold.value == answer.value
    if gold.unit == PERCENT and not answer.unit:
        return answer.value in (gold.value, gold.value / 100)
    if answer.unit == PERCENT and not gold.unit:
        return gold.value == answer.value / 100 or (gold.value == answer.value and abs(gold.value) > 1)
    return compatible(gold.unit, answer.unit) and gold.value == answer.value


def compatible(gold_unit: str, answer_unit: str) -> bool:
    return not gold_unit or not answer_unit or gold_unit == answer_unit


def same_measure(gold: Expression, answer: Expression) -> bool:
    r"""Whether the units agree. Only a plain number can be meant in degrees without the sign: π is in radians."""
    if {gold.unit, answer.unit} == {DEGREE, ""} and "\\pi" in gold.latex:
        return False
    return compatible(gold.unit, answer.unit)


def same_ratio(gold: str, answer: str) -> bool:
    """Whether both are ratios ``2:3`` of the same value; what may be a time of day, ``3:30``, is not reduced."""
    if not re.fullmatch(r"\d+(:\d+)+", gold) or not re.fullmatch(r"\d+(:\d+)+", answer):
        return False
    terms, other = ([int(term) for term in ratio.split(":")] for ratio in (gold, answer))
    if re.fullmatch(r"\d{1,2}:[0-5]\d", gold) or len(terms) != len(other) or not all(terms + other):
        return terms == other and len(gold) == len(answer)
    return all(term * other[0] == match * terms[0] for term, match in zip(terms, other, strict=True))
