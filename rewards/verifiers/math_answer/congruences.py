r"""Congruences: ``x \equiv 3 \pmod 7`` in its spellings, and ``7k + 3`` for it."""

import re
from collections.abc import Callable
from math import lcm

from rewards.verifiers.math_answer.forms import Congruence, Expression, Form, Listing, Named, Number, Quantified
from rewards.verifiers.math_answer.names import is_name, squeezed

_MODULUS = re.compile(
    r"(?P<value>.*\S)[ ,]*(?:\\pmod|\(? ?\\b?mod(?![a-z])|\(? ?(?<![a-zA-Z\\])mod(?:ulo)?(?![a-zA-Z])"
    r"|\(? ?\\text ?\{ *\(? *mod(?:ulo)? *\}|\\text ?\{ *\(? *mod(?:ulo)?(?= ?\d))"
    r" ?\{? ?(?P<modulus>\d{1,9})[ )}]*"
)
_EQUIVALENT = re.compile(r"(?:(?P<name>[^=]*?) ?(?:\\equiv|=))? ?(?P<residues>[^=]*)")
_MULTIPLE_FIRST = re.compile(r"(?P<modulus>\d+) ?[a-z] ?(?:(?P<residue>[+-] ?\d+))?")
_MULTIPLE_LAST = re.compile(r"(?P<residue>-?\d+) ?\+ ?(?P<modulus>\d+) ?[a-z]")
_MOST_RESIDUES = 10_000


def congruence(text: str, form: Callable[[str], Form]) -> Form | None:
    """A congruence whose residues and modulus are plain integers; ``form`` reads the residues."""
    match = _MODULUS.fullmatch(text)
    if match is None or "mod" in match["value"] or int(match["modulus"]) < 2:
        return None
    sides = _EQUIVALENT.fullmatch(match["value"].replace("\\equiv", " \\equiv "))
    if sides is None or (sides["name"] is not None and not is_name(sides["name"])):
        return None
    residues = form(sides["residues"].strip())
    items = residues.items if isinstance(residues, Listing) else (residues,)
    integers = tuple(int(item.value) for item in items if isinstance(item, Number) and not item.unit)
    if (
        not integers
        or len(integers) < len(items)
        or any(item.value.denominator > 1 for item in items if isinstance(item, Number))
    ):
        return None
    found = Congruence(integers, int(match["modulus"]))
    return Named(squeezed(sides["name"]), found) if sides["name"] else found


def as_congruence(form: Form) -> Congruence | None:
    """``7k + 3`` and ``3 + 7k, k \\in \\mathbb{Z}``, of any letter, as the congruence that they solve."""
    if isinstance(form, Congruence):
        return form
    if isinstance(form, Quantified) and form.domain in ("Z", ""):
        form = form.value
    if isinstance(form, Named):
        return as_congruence(form.value)
    if not isinstance(form, Expression) or form.unit:
        return None
    match = _MULTIPLE_FIRST.fullmatch(form.latex.strip()) or _MULTIPLE_LAST.fullmatch(form.latex.strip())
    if match is None or not 2 <= int(match["modulus"]) < 10**9:
        return None
    return Congruence((int((match["residue"] or "0").replace(" ", "")),), int(match["modulus"]))


def same_congruence(gold: Congruence, answer: Congruence) -> bool:
    """Whether the same integers solve both, whatever the moduli."""
    modulus = lcm(gold.modulus, answer.modulus)
    if modulus // min(gold.modulus, answer.modulus) * max(len(gold.residues), len(answer.residues)) > _MOST_RESIDUES:
        return False
    ours, theirs = (
        {(residue + step) % modulus for residue in each.residues for step in range(0, modulus, each.modulus)}
        for each in (gold, answer)
    )
    return ours == theirs


def is_residue(number: Number, answer: Congruence) -> bool:
    """Whether a congruence says no more than its one residue, the least that is not below zero."""
    return (
        not number.unit
        and answer.residues == (int(number.value),)
        and number.value.denominator == 1
        and 0 <= number.value < answer.modulus
    )
