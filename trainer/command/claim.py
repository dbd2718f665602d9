"""Test papers' claims by a sweep: supported, contradicted or not decided, with interval, cost and certificate.

    evenkeel claim claims/order                           # runs the sweep, or goes on with it, and answers
    evenkeel claim my_claims.yaml --no-run                # answers from the runs that are there
    evenkeel claim --verify my_claims.certificate.json    # what has changed since: configs, data, code, results

A file names a sweep, and of each claim the variant that it is about, what that is better or worse than, in which
outcome (accuracy, where it names none), and the smallest difference that matters:

    sweep: sweeps/laptop.yaml
    claims:
      lopti_order:
        claim: Lopti's order of tokens helps beyond its second pass.
        source: arXiv 2505.12929
        variant: lopti
        against: [grpo, lopti_random, grpo_double_steps]
        matters: 0.02

Supported: the 95 % intervals of the differences from all of them lie above 0. The certificate next to the file holds
the answers and the SHA-256 of every file that they rest on; copy shipped claims first (`evenkeel configs copy`).

Exit status: 0 answered, or nothing has changed; 1 cells failed, or something has changed; 2 refused; 130 stopped.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.lab.claims.claim import load_claims, load_sweep_of
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
    if arguments.verify and (arguments.no_run or arguments.json):
        command.error("--verify goes with no other option")
    if not (arguments.verify or arguments.no_run):
        load_libraries(arguments.file)
    from evenkeel.trainer.lab.claims.answering import answered
    from evenkeel.trainer.lab.claims.certificate import FILES, SUFFIX, certificate, changes, write_certificate
    from evenkeel.trainer.lab.reports.run_files import read_runs
    from evenkeel.trainer.lab.sweeps import commands

    if arguments.verify is not None:
        changed = changes(arguments.verify)
        print("\n".join(changed) or "Nothing that the answer rests on has changed.")
        return int(bool(changed))
    claims, sweep_file = load_claims(arguments.file)
    sweep = load_sweep_of(claims, sweep_file)
    with redirect_stdout(sys.stderr) if arguments.json else nullcontext():
        if arguments.no_run:
            commands.check_unchanged(sweep_file)
        elif status := commands.run(sweep_file):
            return status
    root = Path(sweep.output_dir)
    runs = read_runs(root)
    tuning = [] if sweep.tune is None else read_runs(root / "tuning").all
    answers = {name: answered(name, claim, sweep, runs, tuning) for name, claim in claims.items()}
    path = arguments.file.with_name(arguments.file.stem + SUFFIX)
    content = certificate(arguments.file, sweep, sweep_file, answers)
    write_certificate(content, path)
    if arguments.json:
        print(json.dumps({key: value for key, value in content.items() if key not in FILES}, indent=2))
    else:
        print("\n".join([line for found in answers.values() for line in sentences(found)] + [f"Certificate: {path}"]))
    return 0


def sentences(found: "Answered") -> list[str]:
    """The answer to a claim with its intervals and its cost."""
    claim, answer, cost = found.claim, found.answer, found.cost
    lines = ["", f"{answer.answer.capitalize()}: {claim.claim} ({claim.source})"]
    lines += [f"  {answer.reason}"] if answer.reason else []
    for name, difference in answer.differences.items():
        each = difference if claim.sign > 0 else -difference
        items = f" × {each.num_items} items of {found.held_out}" if each.num_items else ""
        numbers = f"{each.value:+.3f} [{each.low:+.3f}, {each.high:+.3f}], {each.num_seeds} seeds{items}"
        lines.append(f"  {claim.variant} − {name}: {numbers}")
    lines.append(f"  {claim.outcome}, in {claim.compared.unit}; intervals at 95 %")
    lines.append(f"  claimed: {claim.direction}")
    if answer.excludes_what_matters:
        lines.append(f"  a difference of {claim.matters:g} in the claimed direction is excluded")
    if answer.answer == "not decided" and not answer.reason:
        needed = answer.seeds_needed
        how_many = f"about {needed} seeds" if needed else "more than 1,000 seeds, or more held-out items,"
        lines.append(f"  {how_many} would find a difference of {claim.matters:g} in 80 % of sweeps")
    hours = "unknown" if cost.core_hours is None else f"{cost.core_hours:.2f}"
    tokens = "unknown" if cost.tokens is None else f"{cost.tokens:,.0f}"
    lines.append(f"  cost: {cost.cells} cells, {hours} core hours, {tokens} tokens")
    return lines


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("file", nargs="?", type=named_path, help="YAML file of claims, or a shipped one's name")
    command.add_argument("--no-run", action="store_true", help="start nothing")
    command.add_argument("--json", action="store_true", help="print the answer as JSON, all else on stderr")
    command.add_argument("--verify", type=Path, metavar="CERTIFICATE", help="list the files that have changed since")
    return command
