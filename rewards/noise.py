"""Simulated verifier errors of known rates, visible to training alone.

    rewards:
      - verifier: countdown
        noise: {false_positive: 0.05, false_negative: 0.15, kind: random}

An error is a function of the completion, not of a stream of random numbers: it is the same on any number of processes
and after a resume. Errors are nested: a verdict that is inverted at 5 % is also inverted at 15 %.
"""

import hashlib
import json
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Rate = Annotated[float, Field(ge=0, le=1)]


class RewardNoise(BaseModel):
    """Errors of the verdicts that training sees; held-out verdicts and correctness columns stay true.

    Both rates 1 invert the reward. Rates that sum to 1 are a reward drawn whatever the answer: 0.5 and 0.5 toss a coin
    (the random rewards of arXiv 2506.10947). Unscored rows stay unscored.

    Raises:
        pydantic.ValidationError: a rate outside 0 … 1, or a ``matching`` that is no regular expression.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    false_positive: Rate = 0.0
    """Probability that a wrong answer is scored as right; it then has the verifier's full score."""
    false_negative: Rate = 0.0
    """Probability that a right answer is scored as wrong; it then has ``wrong_score``."""
    kind: Literal["random", "systematic"] = "random"
    """``random``: drawn for each sample. ``systematic``: the same answer to the same problem is always scored the same
    way (arXiv 2605.02909: a verdict that is consistently wrong given a property).
    """
    matching: Annotated[str, Field(min_length=1)] | None = None
    """Only completions in which this regular expression is found: with a rate of 1 the paper's tokens and phrases.
    ``null`` = all.
    """
    wrong_score: float = 0.0
    """The score of a right answer that is scored as wrong."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        try:
            re.compile(self.matching or "")
        except re.error as error:
            what = {"matching": repr(self.matching), "error": str(error)}
            raise PydanticCustomError(
                "noise", "matching is {matching}, no regular expression: {error}.", what
            ) from error
        return self


def noisily_right(
    noise: RewardNoise, right: bool, *, label: str, row_key: int, problem: Any, completion: str, answer: str | None
) -> bool:
    """True if a completion counts as right in training: ``right ≠ (u < rate)``, with u uniform on [0, 1).

    ``u`` is a hash of the reward's label, and

    - random: ``row_key`` (the run's seed, the number of the rollout batch, the prompt, which of its samples in that
      batch) and the completion's text;
    - systematic: ``problem`` (prompt and reference) and the answer that the verifier read, or the completion's text
      where it read none. It is the same in all runs.
    """
    if noise.matching is not None and not re.search(noise.matching, completion):
        return right
    read = completion if answer is None else answer
    known = [row_key, completion] if noise.kind == "random" else [problem, read]
    return right != (uniform(0, label, known) < (noise.false_negative if right else noise.false_positive))


def uniform(*parts: Any) -> float:
    """A number in [0, 1) of 53 bits that depends on ``parts`` alone: BLAKE2b of their JSON."""
    written = json.dumps(parts, sort_keys=True, default=str).encode()
    return (int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "big") >> 11) * 2.0**-53
