"""Played rounds of the environments that ship, as conversations, for the supervised warm-up of a small policy.

A careful player of a game follows its best policy, a hasty one acts at random and does not read the answers. A careful
one with Python has it compute the question; a hasty one guesses the result.
"""

import random
from collections.abc import Callable
from typing import Any

from evenkeel.rewards.environments.shipped import Guessing, KeyDoor
from evenkeel.rewards.generators.arithmetic import ArithmeticProblem
from scripts.tiny_policy.arithmetic_demonstrations import demonstration as worked_arithmetic

Messages = list[dict[str, Any]]
LARGEST, GUESSES = 15, 4
LENGTH, MOVES = 4, 12
_MOST_HASTY_MOVES = 6


def guessing(played_round: Any, rng: random.Random, *, careful: bool) -> Messages:
    """Bisection until the number is found, or numbers at random until the guesses are used up."""
    game, played = Guessing(largest=LARGEST, guesses=GUESSES), Messages()
    game.reset(reference=played_round.reference)
    while len(played) < 2 * GUESSES and game.get_reward() == 0:
        low, high = map(int, game.state().split("-"))
        number = (low + high) // 2 if careful else rng.randint(1, LARGEST)
        played += _turn(game.guess, number=number)
    return [*played, _said("done")]


def key_door(played_round: Any, rng: random.Random, *, careful: bool) -> Messages:
    """The shortest way to the opened door, or up to six actions at random."""
    game, played = KeyDoor(length=LENGTH, moves=MOVES), Messages()
    game.reset(reference=played_round.reference)
    left = MOVES if careful else rng.randint(0, _MOST_HASTY_MOVES)
    while len(played) < 2 * left and game.get_reward() == 0:
        _, place, _, _, has, *_ = game.state().replace(",", "").split()
        if not careful:
            action = rng.choice(("left", "right", "take", "open"))
        elif has == "without":
            action = "take" if place == "1" else "left"
        else:
            action = "open" if place == str(LENGTH) else "right"
        played += _turn(game.move, action=action)
    return [*played, _said("done")]


def python_tool(problem: ArithmeticProblem, rng: random.Random, *, careful: bool) -> Messages:
    """The result as Python prints it, or a guess of it."""
    if not careful:
        return [_said(worked_arithmetic(problem, rng, careful=False).removeprefix("<think></think>\n"))]

    def python(code: str) -> str:
        return f"{problem.value}\n"

    return [*_turn(python, code=f"print({problem.expression})"), _said(f"\\boxed{{{problem.value}}}")]


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _turn(tool: Callable[..., str], **arguments: Any) -> Messages:
    call = {"type": "function", "function": {"name": tool.__name__, "arguments": arguments}}
    answer = {"role": "tool", "name": tool.__name__, "content": tool(**arguments)}
    return [{**_said(""), "tool_calls": [call]}, answer]
