"""Find what is wrong with a run from its log, while it runs or afterwards.

    evenkeel doctor runs/quickstart                           # a run of ours: its metrics.jsonl
    evenkeel doctor outputs/checkpoint-500                    # TRL's, or any Trainer's: its trainer_state.json
    evenkeel doctor wandb/offline-run-20260101_120000-abcdef  # W&B's offline folder, whoever logged into it
    evenkeel doctor logs/metrics.jsonl --json                 # verl's logger `file`

Each finding has its numbers and the settings to change; docs/doctor.md has every threshold with its reason.

Exit status: 0 nothing found, 1 findings, 2 refused: no log that can be read.

--json prints one object: ``path``, ``lines``, ``first_step``, ``last_step``, ``ok``, ``findings``, ``not_logged``
(metrics that rules read) and ``damaged`` (places of the file that hold no numbers).
"""

import argparse
import json
from collections.abc import Sequence
from typing import get_args

from evenkeel.errors import Severity, counted
from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.lab.doctor.readers import Record, read
from evenkeel.trainer.lab.doctor.rules import Examination


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    record = read(arguments.path)
    examination = Examination().add_all(record.lines)
    print((json_report if arguments.json else text_report)(record, examination))
    return 1 if examination.findings else 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("path", help="folder of a run, or the file with its metrics")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    return command


def text_report(record: Record, examination: Examination) -> str:
    """The findings, the worst first; metrics that are not logged; a last line with counts."""
    steps = [step for step, _ in record.lines]
    lines = [f"{record.path}: {len(steps)} lines, steps {steps[0]} to {steps[-1]}."]
    lines += [f"Left out: {place}." for place in record.damaged]
    severities = get_args(Severity)
    findings = sorted(examination.findings.values(), key=lambda found: severities.index(found.severity))
    for found in findings:
        when = f"step {found.first_step}" + (f" to {found.last_step}" if found.last_step > found.first_step else "")
        lines += ["", f"{found.severity}: {found.rule}, {when}"]
        lines += [f"    {found.text}", f"    {found.advice}"]
    if examination.not_logged:
        lines += ["", f"Not logged: {', '.join(examination.not_logged)}."]
    return "\n".join([*lines, "", f"{counted([found.severity for found in findings])}."])


def json_report(record: Record, examination: Examination) -> str:
    """The findings as one JSON object."""
    steps = [step for step, _ in record.lines]
    report = {
        "path": str(record.path),
        "lines": len(steps),
        "first_step": steps[0],
        "last_step": steps[-1],
        "ok": not examination.findings,
        "findings": [vars(found) for found in examination.findings.values()],
        "not_logged": examination.not_logged,
        "damaged": record.damaged,
    }
    return json.dumps(report, indent=2, ensure_ascii=False)
