"""Worked answers to arithmetic questions, for the supervised warm-up of a small policy.

A careful answer does one operation a line and boxes the last result. A hasty one has no thoughts and boxes a guess.
"""

import random

from evenkeel.rewards.generators.arithmetic import ArithmeticProblem

_FARTHEST_GUESS = 10


def demonstration(problem: ArithmeticProblem, rng: random.Random, *, careful: bool) -> str:
    """A completion for ``problem``: right when ``careful``, else right by luck, once in about twenty."""
    if not careful:
        guess = rng.randint(max(0, problem.value - _FARTHEST_GUESS), problem.value + _FARTHEST_GUESS)
        return f"<think></think>\n\\boxed{{{guess}}}"
    lines = "\n".join(f"{step.left} {step.operation} {step.right} = {step.value}" for step in problem.steps)
    return f"<think>{lines}</think>\n\\boxed{{{problem.value}}}"
