"""Claims about equals, and how often they come out as supported or contradicted."""

import argparse
from typing import Any

import numpy as np
from scipy.special import expit, logit

from evenkeel.trainer.command import positive
from evenkeel.trainer.lab.statistics import claim_answer, look_levels, paired_difference

TRUTHS: dict[str, dict[str, Any]] = {
    "seeds as of the quickstart": {},
    "seeds differ four times as much": {"seed_sd": 1.0},
    "variants right on other items": {"own_items_sd": 1.0},
    "30 items": {"items": 30, "accuracy": 0.5},
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("--claims", type=positive(int), default=2000, help="of each cell; default %(default)s")


def measure(options: argparse.Namespace) -> None:
    """Print the table."""
    designs: list[tuple[Any, ...]] = [(seeds, others, None) for seeds in (3, 5, 10) for others in (1, 2, 3)]
    designs.append((5, 1, (3, 4, 5)))
    heads = [f"{seeds} seeds, {others} other" + f", looks {looks}" * bool(looks) for seeds, others, looks in designs]
    print("| equals | " + " | ".join(heads) + " |\n|" + " --- |" * (len(heads) + 1))
    for name, truth in TRUTHS.items():
        cells = [wrong_answers(options.claims, *design, **truth) for design in designs]
        shown = [f"{100 * (yes + no) / options.claims:.1f} % ({yes} + {no})" for yes, no in cells]
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)
    print("\nIn brackets: claims that came out as supported + as contradicted.")


def wrong_answers(
    claims: int,
    seeds: int,
    others: int,
    looks: tuple[int, ...] | None = None,
    *,
    items: int = 256,
    accuracy: float = 0.85,
    seed_sd: float = 0.25,
    own_items_sd: float = 0.0,
) -> tuple[int, int]:
    """How many of so many claims about equals are supported and contradicted.

    Items are of Beta-distributed difficulty, shared by all variants; on the logit scale a seed shifts all items of its
    run (0.25: about 0.025 of accuracy at 0.85, as seeds of the quickstart differ), and ``own_items_sd`` shifts an item
    in one variant for all its seeds. With ``looks`` a claim is answered at the first one that decides it.
    """
    rng = np.random.default_rng(0)
    found = {"supported": 0, "contradicted": 0, "not decided": 0}
    looks = looks or (seeds,)
    for _ in range(claims):
        difficulty = logit(rng.beta(2 * accuracy, 2 * (1 - accuracy), items).clip(1e-4, 1 - 1e-4))
        of_seed = rng.normal(0, seed_sd, (others + 1, seeds, 1))
        of_item = rng.normal(0, own_items_sd, (others + 1, 1, items))
        right = rng.random((others + 1, seeds, items)) < expit(difficulty + of_seed + of_item)
        for look, level in zip(looks, look_levels(looks), strict=True):
            pairs = {str(k): paired_difference(right[0, :look], right[k, :look]) for k in range(1, others + 1)}
            answer = claim_answer(pairs, matters=0.02, alpha=level).answer
            if answer != "not decided":
                break
        found[answer] += 1
    return found["supported"], found["contradicted"]
