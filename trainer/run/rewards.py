"""What a run takes of the package `rewards`: the scripts hand it in, and this room imports none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rewards.verifier import Verifier
from trainer.run.data import Generator


@dataclass(frozen=True)
class Rewards:
    """The functions of `rewards` that a run calls.

    Attributes:
        build_verifier: the verifier that a specification names (`rewards.build_verifier`).
        generators: by name, what ``data.<part>.generator`` may ask for (`rewards.GENERATORS`).
        usable_rows: which rows their verifiers can judge (`rewards.references.check_rewards`).
        reward_functions: verifiers as TRL's reward functions (`rewards.reward_functions`).
        verifier_stacks: where the verifiers' processes are (`rewards.verifier_stacks`).
    """

    build_verifier: Callable[[Any], Verifier]
    generators: Mapping[str, Generator]
    usable_rows: Callable[..., list[int]]
    reward_functions: Callable[..., list[Any]]
    verifier_stacks: Callable[[], str] = str
