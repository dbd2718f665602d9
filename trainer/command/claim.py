"""Test a paper's claim by a sweep: supported, contradicted or not decided, with interval, cost and certificate.

    evenkeel claim claims/lopti_order                    # runs the sweep, or goes on with it, and answers
    evenkeel claim my_claim.yaml --no-run                # answers from the runs that are there
    evenkeel claim --verify my_claim.certificate.json    # what has changed since: configs, data, code, results

A claim file names a sweep, the variant that the claim is about, what it is better or worse than, in which outcome
(accuracy, where it names none), and the smallest difference that matters:

    claim: Lopti's order of tokens helps beyond its second pass.
    source: arXiv 2505.12929
    sweep: sweeps/laptop.yaml
    variant: lopti
    against: [grpo, lopti_random, grpo_double_steps]
    matters: 0.02

Supported: the 95 % intervals of the differences from all of them lie above 0. The certificate next to the claim's file
holds the SHA-256 of every file that the answer rests on; copy a shipped claim first (`evenkeel configs copy`).

Exit status: 0 answered, or nothing has changed; 1 cells failed, or something has changed; 2 refused; 130 stopped.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.lab.claims.claim import Claim, load_claim, load_sweep_of
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.libraries import load_libraries

if TYPE_CHECKING:
    from evenkeel.trainer.lab.claims.answering import Answered


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    command = parser()
    arguments = command.parse_args(argv)
    if (arguments.file is None) == (arguments.verify is None):
        command.error("name a claim's file, or a certificate by --verify")
    if not (arguments.verify or arguments.no_run):
        load_libraries(arguments.file)
    from evenkeel.trainer.lab.claims.answering import answered
    from evenkeel.trainer.lab.claims.certificate import SUFFIX, certificate, changes, write_certificate
    from evenkeel.trainer.lab.sweeps import commands

    if arguments.verify is not None:
        changed = changes(arguments.verify)
        print("\n".join(changed) or "Nothing that the answer rests on has changed.")
        return int(bool(changed))
    claim, sweep_file = load_claim(arguments.file)
    sweep = load_sweep_of(claim, sweep_file)
    if not arguments.no_run and (status := commands.run(sweep_file)):
        return status
    found = answered(claim, sweep)
    path = arguments.file.with_name(arguments.file.stem + SUFFIX)
    content = certificate(claim, arguments.file, sweep, sweep_file, found)
    write_certificate(content, path)
    if arguments.json:
        print(json.dumps({key: value for key, value in content.items() if key not in _LISTS}, indent=2))
    else:
        print("\n".join(["", *sentences(claim, found), f"Certificate: {path}"]))
    return 0


_LISTS = ("configs", "data", "code", "results")


def sentences(claim: Claim, found: "Answered") -> list[str]:
    """The answer with its intervals and its cost."""
    answer, cost = found.answer, found.cost
    lines = [f"{answer.answer.capitalize()}: {claim.claim} ({claim.source})"]
    for name, difference in answer.differences.items():
        each = difference if claim.sign > 0 else -difference
        items = f" × {each.num_items} items of {found.held_out}" if each.num_items else ""
        numbers = f"{each.value:+.3f} [{each.low:+.3f}, {each.high:+.3f}], {each.num_seeds} seeds{items}"
        lines.append(f"  {claim.variant} − {name}: {numbers}")
    lines.append(f"  {claim.outcome}, in {claim.compared.unit}; intervals at 95 %")
    lines.append(f"  claimed: {claim.direction}")
    if answer.excludes_what_matters:
        lines.append(f"  a difference of {claim.matters:g} in the claimed direction is excluded")
    if answer.answer == "not decided":
        needed = answer.seeds_needed
        how_many = f"about {needed} seeds" if needed else "more than 1,000 seeds, or more held-out items,"
        lines.append(f"  {how_many} would find a difference of {claim.matters:g} in 80 % of sweeps")
    hours = "unknown" if cost.core_hours is None else f"{cost.core_hours:.2f}"
    tokens = "unknown" if cost.tokens is None else f"{cost.tokens:,.0f}"
    lines.append(f"  cost: {cost.cells} cells, {hours} core hours, {tokens} tokens")
    return lines


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("file", nargs="?", type=named_path, help="YAML file of the claim, or a shipped one's name")
    command.add_argument("--no-run", action="store_true", help="start nothing")
    command.add_argument("--json", action="store_true", help="print the answer as JSON")
    command.add_argument("--verify", type=Path, metavar="CERTIFICATE", help="list the files that have changed since")
    return command
