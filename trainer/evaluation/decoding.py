"""Decoding options of evaluations, and the completions that each process draws."""

import math
from dataclasses import dataclass, replace
from typing import Any

GREEDY = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "min_p": None}


@dataclass(frozen=True)
class Decoding:
    """One way to answer every item.

    Attributes:
        samples: completions per item.
        temperature: of sampling; ``None`` = as in training.
        greedy: take the most probable token instead of sampling, for one completion per item.
    """

    samples: int = 1
    temperature: float | None = None
    greedy: bool = False

    def at(self, training_temperature: float) -> "Decoding":
        """The same with its temperature as a number; greedy has none."""
        return self if self.greedy or self.temperature else replace(self, temperature=training_temperature)

    @property
    def generation_arguments(self) -> dict[str, Any]:
        """Arguments of transformers' ``GenerationConfig`` that differ from training; empty if none do."""
        if self.greedy:
            return GREEDY
        return {} if self.temperature is None else {"do_sample": True, "temperature": self.temperature}

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics of its completions, the mean accuracy first."""
        if self.greedy:
            return ["greedy"]
        if self.samples == 1:
            return ["avg@1"]
        k = self.samples
        return [f"avg@{k}", *(f"pass@{size}" for size in pass_sizes(k)), f"maj@{k}"]


def decodings(samples: int | None, temperature: float | None, greedy: bool) -> list[Decoding]:
    """The decodings of ``evaluation.samples``, ``temperature`` and ``greedy``; the accuracy is that of the first.

    Without ``samples`` one completion is sampled, or, with ``greedy``, only the greedy one is drawn.
    """
    number = (0 if greedy else 1) if samples is None else samples
    sampled = [Decoding(number, temperature)] if number else []
    return sampled + ([Decoding(greedy=True)] if greedy else [])


def pass_sizes(samples: int) -> list[int]:
    """The k of pass@k that are shown: powers of two from 2, and ``samples``; pass@1 is the average."""
    powers = (2**exponent for exponent in range(1, samples.bit_length()))
    return sorted({*powers, samples} - {1})


@dataclass(frozen=True)
class Draw:
    """One completion to draw: row of the held-out set, and number of the sample."""

    item: int
    sample: int
    padding: bool = False


def draws_of_rank(items: int, samples: int, batch_size: int, rank: int, world_size: int) -> list[list[Draw]]:
    """This rank's batches: every rank has the same number, all of one size, at most ``batch_size``.

    Generation is collective, so ranks must take the same steps. The last batches are filled with repetitions of the
    first draw, marked as padding, which are generated but neither scored nor counted.
    """
    draws = [Draw(item, sample) for item in range(items) for sample in range(samples)]
    number = math.ceil(len(draws) / (batch_size * world_size))
    size = math.ceil(len(draws) / (number * world_size))
    draws += [Draw(0, 0, padding=True)] * (number * size * world_size - len(draws))
    own = draws[rank::world_size]
    return [own[start : start + size] for start in range(0, len(own), size)]
