"""Brief answers to Knights & Knaves, for policies that a laptop trains within a minute.

A thought notes claims down in few words, and after each what its speaker must be: ``Ada if Boris knave then Clara not
knight so Ada : knight .`` Completions differ in length by what is claimed, and by how many claims were noted.
"""

import random
from collections.abc import Sequence
from itertools import product

from evenkeel.rewards.verifiers.knights_knaves.language import role
from evenkeel.rewards.verifiers.knights_knaves.puzzle import LEAVES, Puzzle, Statement, evaluate

_BETWEEN = {"and": "and", "or": "or", "->": "then", "<=>": "only"}


def noted_claims(puzzle: Puzzle, rng: random.Random, *, careful: bool) -> str:
    """Claims with their speakers' roles, then the roles of all, in the form which the strict layout reads.

    A careful one notes all claims, so that its roles are the solution. A hasty one leaves off before the last claim or
    earlier, takes any roles that agree with those it has noted, and is right by luck.
    """
    people = len(puzzle.names)
    noted = people if careful else rng.randrange(people)
    agreeing = [roles for roles in product((True, False), repeat=people) if _agree(puzzle, roles, noted)]
    clauses = [f"{name} : {role(knight)}" for name, knight in zip(puzzle.names, rng.choice(agreeing), strict=True)]
    notes = [
        f"{name} {_note(claim, puzzle.names)} so {clause} ."
        for name, claim, clause in zip(puzzle.names, puzzle.statements, clauses, strict=True)
    ]
    return " ".join(["<think>", *notes[:noted], "</think> <answer>", *clauses, "</answer>"])


def _agree(puzzle: Puzzle, roles: Sequence[bool], noted: int) -> bool:
    """Whether the first ``noted`` claims are true of knights and false of knaves."""
    return all(evaluate(claim, roles) == roles[speaker] for speaker, claim in enumerate(puzzle.statements[:noted]))


def _note(claim: Statement, names: Sequence[str]) -> str:
    """``claim`` without the words that say nothing: ``Boris is a knave if and only if …`` as ``Boris knave only …``."""
    word, *arguments = claim
    if word in LEAVES:
        return f"{names[arguments[0]]} {role(word == 'telling-truth')}"
    if word == "not":
        return f"{names[arguments[0][1]]} not {role(arguments[0][0] == 'telling-truth')}"
    joined = f" {_BETWEEN[word]} ".join(_note(argument, names) for argument in arguments)
    return f"if {joined}" if word == "->" else joined
