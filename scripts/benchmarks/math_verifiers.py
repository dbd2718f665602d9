r"""Graders of mathematics answers beside one another, on the same labelled pairs in the same run.

A pair is a gold with an ``answer``, which goes into ``\boxed{…}``, or a whole ``completion``; ``right`` says whether it
is the gold, by mathematics and before any grader was asked. A **false negative** is a right answer without the full
score, refused or unscored; a **false positive** is a wrong one that is paid.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from math_verify import parse, verify

from evenkeel.rewards.verifiers.math_answer import MathAnswer
from scripts.program import run

Grader: TypeAlias = Callable[[Sequence[str], Sequence[str]], Sequence[float | None]]
"""Scores of completions against golds; ``None`` = the gold cannot be scored."""


FRESH = sorted((Path(__file__).parents[2] / "tests/rewards/verifiers/math_answer").glob("fresh*_pairs.json"))
"""What no rule was written from."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--pairs", type=Path, nargs="+", default=FRESH, help="JSON lists of pairs; default the fresh")
    command.add_argument("--errors", action="store_true", help="also list each error of our verifier")


def measure(options: argparse.Namespace) -> dict[str, dict[str, dict[str, Any]]]:
    """A Markdown table of each file, and ours for each class; file → grader → what it got wrong."""
    from trl.rewards import accuracy_reward

    measured = {}
    for file in options.pairs:
        pairs = labelled_pairs(file)
        found = rates_of_graders(pairs, accuracy_reward)
        print(f"\n{file.name}\n\n{comparison_of_graders(found, pairs, list_errors=options.errors)}")
        measured[file.name] = {name: asdict(each) for name, each in found.items()}
    return measured


@dataclass(frozen=True)
class Pair:
    """A gold, a completion, and whether it is right."""

    gold: str
    completion: str
    right: bool
    kind: str


@dataclass(frozen=True)
class Rates:
    """What one grader got wrong, and its wall time in seconds."""

    right: int
    wrong: int
    false_negatives: list[Pair]
    false_positives: list[Pair]
    unscored: int
    seconds: float


def labelled_pairs(file: Path) -> list[Pair]:
    """The pairs of a JSON file."""
    return [
        Pair(
            pair["gold"],
            pair.get("completion") or f"Therefore the answer is $\\boxed{{{pair['answer']}}}$.",
            pair["right"],
            pair["class"],
        )
        for pair in json.loads(file.read_text(encoding="utf-8"))
    ]


def rates(grader: Grader, pairs: Sequence[Pair]) -> Rates:
    """How often ``grader`` refuses what is right and pays what is wrong."""
    started = time.perf_counter()
    scores = grader([pair.completion for pair in pairs], [pair.gold for pair in pairs])
    seconds = time.perf_counter() - started
    paid = [(score or 0) >= 1 for score in scores]
    scored = list(zip(pairs, paid, strict=True))
    return Rates(
        right=sum(pair.right for pair in pairs),
        wrong=sum(not pair.right for pair in pairs),
        false_negatives=[pair for pair, is_paid in scored if pair.right and not is_paid],
        false_positives=[pair for pair, is_paid in scored if is_paid and not pair.right],
        unscored=sum(score is None for score in scores),
        seconds=seconds,
    )


def rates_of_graders(pairs: Sequence[Pair], accuracy_reward: Callable[..., list[Any]]) -> dict[str, Rates]:
    """Of our verifier, math-verify and TRL's ``accuracy_reward``.

    math-verify reads both sides in a box. TRL's is given the gold as a dataset's column holds it, and once in dollars.
    """
    graders: Mapping[str, Grader] = {
        "Evenkeel `math_answer`": _ours,
        "math-verify, both boxed": _math_verify,
        "TRL `accuracy_reward`, the gold as it is": lambda completions, golds: accuracy_reward(
            [[{"content": completion}] for completion in completions], list(golds)
        ),
        "TRL `accuracy_reward`, the gold in `$…$`": lambda completions, golds: accuracy_reward(
            [[{"content": completion}] for completion in completions],
            [gold if "$" in gold else f"${gold}$" for gold in golds],
        ),
    }
    return {name: rates(grader, pairs) for name, grader in graders.items()}


def comparison_of_graders(measured: Mapping[str, Rates], pairs: Sequence[Pair], *, list_errors: bool = False) -> str:
    """A table of all graders in Markdown, and one of the first for each class; its errors follow on demand."""
    ours = next(iter(measured.values()))
    return "\n".join([*_table(measured), "", *_classes(ours, pairs), *(_errors(ours) if list_errors else [])])


def _ours(completions: Sequence[str], golds: Sequence[str]) -> list[float | None]:
    return [verdict.score for verdict in MathAnswer().judge_all(completions, golds)]


def _math_verify(completions: Sequence[str], golds: Sequence[str]) -> list[float | None]:
    return [
        float(verify(parse(f"\\boxed{{{gold}}}"), parse(completion)))
        for completion, gold in zip(completions, golds, strict=True)
    ]


def _table(measured: Mapping[str, Rates]) -> list[str]:
    lines = ["| grader | right answers refused | wrong answers paid | golds unscored | s |", "|---|---|---|---|---|"]
    for name, found in measured.items():
        refused, paid = _share(found.false_negatives, found.right), _share(found.false_positives, found.wrong)
        lines.append(f"| {name} | {refused} | {paid} | {found.unscored} | {found.seconds:.1f} |")
    return lines


def _classes(found: Rates, pairs: Sequence[Pair]) -> list[str]:
    lines = ["| class, by our verifier | right answers refused | wrong answers paid |", "|---|---|---|"]
    for kind in sorted({pair.kind for pair in pairs}):
        refused, paid = (
            _share(
                [pair for pair in errors if pair.kind == kind], sum(p.right is right for p in pairs if p.kind == kind)
            )
            for errors, right in ((found.false_negatives, True), (found.false_positives, False))
        )
        lines.append(f"| {kind} | {refused} | {paid} |")
    return lines


def _share(errors: Sequence[Pair], of: int) -> str:
    return f"{len(errors)} of {of} ({len(errors) / of:.1%})" if of else "none"


def _errors(found: Rates) -> list[str]:
    return [
        f"{problem}, {pair.kind}: {pair.gold} <- {pair.completion}"
        for problem, pairs in (("refused", found.false_negatives), ("paid", found.false_positives))
        for pair in pairs
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
