r"""Try a reward function before it is trusted with a run: right answers refused, wrong ones paid, crashes, time.

    evenkeel audit my_rewards:math_reward                    # TRL's signature; my_rewards.py lies in this folder
    evenkeel audit verl_rewards.gsm8k:compute_score          # verl's
    evenkeel audit my_rewards:math_reward math               # with a verifier that ships (evenkeel verifiers)
    evenkeel audit trl.rewards:accuracy_reward --gold '$ANSWER$'
    evenkeel audit my_rewards:reward --task math --column gold_text --form 'Answer: ANSWER' --json audit.json

The function is called in processes of its own: one that hangs or crashes costs one answer.

Exit status: 0 nothing found, 1 findings, 2 refused: a function that cannot be imported.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from evenkeel.rewards.bench.audit import ANSWER, KINDS, RIGHT, TASKS, Audit, Fault, Kind, audit
from evenkeel.rewards.bench.built_in import BUILT_IN
from evenkeel.trainer.command import command_line, refused_in_words

COLUMNS = ("asked", "refused", "paid", "unscored", "fault", "crash", "over time")


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    arguments = vars(parser().parse_intermixed_args(argv))
    functions, file = arguments.pop("functions"), arguments.pop("json")
    sys.path.insert(0, str(Path.cwd()))
    audits = []
    for function in functions:
        audits.append(audit(function, **arguments))
        print(text_report(audits[-1]) + "\n", flush=True)
    if len(audits) > 1:
        rows = {each.function: [_counts(each, kind) for kind in KINDS] for each in audits}
        print(_table({name: {c: sum(n[c] or 0 for n in counts) for c in COLUMNS} for name, counts in rows.items()}))
    if file is not None:
        Path(file).write_text(json.dumps([as_json(each) for each in audits], indent=2) + "\n", encoding="utf-8")
    return 1 if any(each.findings for each in audits) else 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("functions", nargs="+", metavar="FUNCTION", help="module:function, or a built-in verifier")
    tasks = [*TASKS, *BUILT_IN]
    command.add_argument("--task", choices=tasks, metavar="TASK", help=f"{', '.join(tasks)}; default: math")
    command.add_argument(
        "--column", action="append", default=[], dest="columns", metavar="NAME", help="parameter with the right answer"
    )
    command.add_argument("--form", metavar="TEXT", help=f"how it wants answers, {ANSWER} for the answer")
    command.add_argument("--gold", default=ANSWER, metavar="TEXT", help=f"how it wants golds, {ANSWER} for the gold")
    command.add_argument("--json", metavar="FILE", help="write every finding as JSON")
    return command


def text_report(audit: Audit) -> str:
    """How it was called, a table by kind of case, the findings by problem with a few cases each, and the time."""
    shape = f"; {audit.shape} as completions" if audit.signature == "TRL" else ""
    lines = [f"{audit.function}: {audit.signature}'s signature{shape}; task {audit.task}"]
    lines.append(f"answers written as {audit.form!r}; paid: a reward of at least {audit.right_at:g}")
    lines += [f"note: {note}" for note in audit.notes]
    counts = {title: _counts(audit, kind) for kind, title in KINDS.items()}
    lines += ["", _table({title: row for title, row in counts.items() if row["asked"]})]
    by_problem: dict[str, list[Fault]] = {}
    for finding in audit.findings:
        by_problem.setdefault(finding.problem, []).append(finding)
    for problem, findings in by_problem.items():
        of_cases = [(finding, finding.asked.case) for finding in findings if finding.asked]
        lines += ["", f"{problem}: {len(findings) if of_cases else findings[0].detail}"]
        named = Counter(case.name for _, case in of_cases)
        lines += [f"    {', '.join(f'{name} {count}' for name, count in named.most_common(8))}"] if named else []
        one_of_each = {case.name: (finding, case) for finding, case in reversed(of_cases)}
        for name, _ in named.most_common(3):
            finding, case = one_of_each[name]
            lines.append(f"    {name}: {finding.detail}")
            lines.append(f"        {_short(case.completion)}  for  {_short(case.row.reference)}")
    seconds = [each.seconds for each in audit.asked]
    lines += ["", f"A call takes {1000 * median(seconds):.3f} ms (median), at most {1000 * max(seconds):.3f} ms."]
    return "\n".join([*lines, f"{len(audit.findings)} findings in {len(audit.asked)} cases."])


def as_json(audit: Audit) -> dict[str, Any]:
    """An audit for JSON, with every finding; completions are cut to 500 characters."""
    findings: list[dict[str, Any]] = []
    for finding in audit.findings:
        findings.append({"problem": finding.problem, "detail": finding.detail})
        if (asked := finding.asked) is not None:
            case = asked.case
            findings[-1] |= {"kind": case.kind, "name": case.name, "reference": case.row.reference}
            findings[-1] |= {"completion": case.completion[:500], "reward": asked.reward, "seconds": asked.seconds}
    called = {name: value for name, value in vars(audit).items() if name not in ("asked", "findings")}
    return {**called, "kinds": {kind: _counts(audit, kind) for kind in KINDS}, "findings": findings}


def _table(rows: dict[str, dict[str, int | None]]) -> str:
    width = max(map(len, rows)) + 2
    lines = [" " * width + "".join(f"  {name}" for name in COLUMNS)]
    for title, counts in rows.items():
        cells = ["-" if counts[name] is None else str(counts[name]) for name in COLUMNS]
        lines.append(title.ljust(width) + "".join(c.rjust(len(n) + 2) for n, c in zip(COLUMNS, cells, strict=True)))
    return "\n".join(lines)


def _counts(audit: Audit, kind: Kind) -> dict[str, int | None]:
    """By `COLUMNS`; ``None`` where it does not apply: a right answer is never paid wrongly, nor a wrong one refused."""
    found = Counter(finding.problem for finding in audit.findings if finding.asked and finding.asked.case.kind == kind)
    return {
        "asked": len(audit.of_kinds(kind)),
        "refused": found["right answer refused"] if kind in RIGHT else None,
        "paid": None if kind in RIGHT else found["wrong answer paid"] + found["exploit paid"],
        **{name: found[name] for name in COLUMNS[3:]},
    }


def _short(value: Any) -> str:
    shown = repr(str(value))
    return f"{shown[:60]}… ({len(str(value))} characters)" if len(shown) > 90 else shown
