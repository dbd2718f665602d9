"""Verdicts made wrong on purpose: what training is told of a verifier's judgement, with errors of known rates.

    rewards:
      - verifier: countdown
        noise: {false_positive: 0.05, false_negative: 0.15, kind: random}

Whether the verdict on a completion is turned round is a function of what the completion is, never of a stream of random
numbers: the same on any number of processes and after a resume. Errors are nested: what is turned round at 5 % is at
15 %.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, with_config

from evenkeel.rewards.registry import Refusal

Rate = Annotated[float, Field(ge=0, le=1)]


class NoiseError(Refusal):
    """Noise that would do nothing, or not what it says."""


@with_config(use_attribute_docstrings=True)
@dataclass(frozen=True)
class RewardNoise:
    """Errors of the verdicts that training is told; held-out verdicts and correctness columns stay true.

    Both rates 1 invert the reward. Rates that sum to 1 are a reward drawn whatever the answer: 0.5 and 0.5 toss a coin
    (the random rewards of arXiv 2506.10947). Unjudged rows stay unjudged.

    Raises:
        NoiseError: both rates 0, a rate outside 0 … 1, a ``property`` of random noise, or a ``matching`` that is no
            regular expression.
    """

    false_positive: Rate = 0.0
    """Probability that a wrong answer is told to be right; it then has the verifier's full score."""
    false_negative: Rate = 0.0
    """Probability that a right answer is told to be wrong; it then has ``wrong_score``."""
    kind: Literal["random", "systematic"] = "random"
    """``random``: drawn for each sample anew. ``systematic``: the same ``property`` is always judged the same way
    (arXiv 2605.02909: a verdict that is consistently wrong given a property).
    """
    property: Literal["answer", "problem"] | None = None
    """Of systematic noise. ``answer`` (``null`` means it): the same answer to the same problem. ``problem``: every
    answer to it, right or wrong. Rates are then shares of such answers or problems. Both are ours; the paper's are
    ``matching``.
    """
    matching: Annotated[str, Field(min_length=1)] | None = None
    """Only completions in which this regular expression is found are told wrongly: with a rate of 1 the paper's tokens
    and phrases. ``null`` = all.
    """
    seed: int = 0
    """Of the draws. Systematic noise knows no other seed: it is the same in all runs, as a verifier is."""
    wrong_score: float = 0.0
    """The score of a right answer that is told to be wrong."""

    def __post_init__(self) -> None:
        if fault := noise_fault(self):
            raise NoiseError(fault)


def noise_fault(noise: RewardNoise) -> str:
    """Why the noise cannot be what it says, and what to write; empty where it can."""
    for name in ("false_positive", "false_negative"):
        if not 0 <= (rate := getattr(noise, name)) <= 1:
            return f"{name} is {rate}, which is not a probability. Write a number from 0 to 1."
    if noise.false_positive == noise.false_negative == 0:
        return "both rates are 0, so that no verdict would be wrong. Write false_positive or false_negative above 0."
    if noise.kind == "random" and noise.property is not None:
        return f"property is {noise.property!r}, and random noise has none. Write kind: systematic, or leave it out."
    try:
        re.compile(noise.matching or "")
    except re.error as error:
        return f"matching is {noise.matching!r}, which is no regular expression: {error}. Write one, such as '\\*'."
    return ""


def told_right(
    noise: RewardNoise,
    right: bool,
    *,
    label: str,
    row_key: int,
    problem: Any,
    completion: str,
    answer: str | None,
) -> bool:
    """Whether training is told that a completion is right: ``right ≠ (u < rate)``, with u uniform on [0, 1).

    ``u`` is made of the noise's seed, the reward's label, and

    - random: ``row_key`` (the run's seed, the number of the rollout batch, the prompt, which of its samples in that
      batch) and the completion's text;
    - systematic: ``problem`` (prompt and reference) and, of ``property: answer``, the answer that the verifier read, or
      the completion's text where it read none.
    """
    if noise.matching is not None and not re.search(noise.matching, completion):
        return right
    if noise.kind == "random":
        known = [row_key, completion]
    else:
        known = [problem] if noise.property == "problem" else [problem, completion if answer is None else answer]
    return right != (uniform(noise.seed, label, known) < (noise.false_negative if right else noise.false_positive))


def uniform(*parts: Any) -> float:
    """A number in [0, 1) of 53 bits that is a function of ``parts`` alone: BLAKE2b of them as JSON."""
    written = json.dumps(parts, sort_keys=True, default=str).encode()
    return (int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "big") >> 11) * 2.0**-53
