"""Worked answers to small programs, for the supervised warm-up of a small policy.

A careful answer writes the expression after every step and then the function. A hasty one has no thoughts and writes
the steps one after another without brackets, which is another function.
"""

import random

from evenkeel.rewards.generators.small_programs import ProgramProblem, program


def demonstration(problem: ProgramProblem, rng: random.Random, *, careful: bool) -> str:
    """A completion for ``problem``: right when ``careful``, else wrong; nothing in it is random so far."""
    if not careful:
        steps = " ".join(f"{operation} {number}" for operation, number in problem.steps)
        return f"<think></think>\n```python\n{program(f'x {steps}')}\n```"
    thought = "\n".join(problem.expressions)
    return f"<think>{thought}</think>\n```python\n{program(problem.expressions[-1])}\n```"
