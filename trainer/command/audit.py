r"""Try a reward function before it is trusted with a run: right answers refused, wrong ones paid, crashes, time.

    evenkeel audit my_rewards:math_reward                    # TRL's signature; my_rewards.py lies in this folder
    evenkeel audit verl_rewards.gsm8k:compute_score          # verl's
    evenkeel audit my_rewards:math_reward math               # beside a verifier that ships (evenkeel verifiers)
    evenkeel audit trl.rewards:accuracy_reward --gold '$ANSWER$'
    evenkeel audit my_rewards:reward --task math --column gold_text --form 'Answer: ANSWER' --json audit.json

The function may be f(prompts, completions, **columns) -> list, as TRL calls it, also async; compute_score(data_source,
solution_str, ground_truth, extra_info), as verl does; or f(completion, reference). It is called in processes of its own
with the answers of a fixed table: one that hangs or crashes costs its answer. The cases of the task *code* are programs
that try to be paid: they run as the function runs programs.

Exit status: 0 nothing found, 1 findings, 2 refused: a function that cannot be imported or called.

--json writes one object for each function, in a list: ``function``, ``ok`` (nothing found), ``signature``, ``task``,
``form``, ``columns``, ``completions`` (messages or text), ``right_at``, ``kinds`` (kind of case → ``asked``,
``refused``, ``paid``, ``unjudged``, ``fault``, ``crash``, ``over_time``, ``not_asked``), ``seconds`` (``median``,
``largest``), ``findings`` (``problem``, ``detail``, and of a single case ``kind``, ``name``, ``reference``,
``completion``, of which 500 characters, ``reward``, ``seconds``) and ``notes``.
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

COLUMNS = ("asked", "refused", "paid", "unjudged", "fault", "crash", "over time", "not asked")
SHOWN = 3
"""Cases of each problem in the text."""


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    command = parser()
    given = command.parse_intermixed_args(argv)
    if given.seconds is not None and given.seconds <= 0:
        command.error(f"--seconds {given.seconds:g} leaves no time for a call; write more than 0")
    arguments = vars(given)
    functions, file = arguments.pop("functions"), arguments.pop("json")
    sys.path.insert(0, str(Path.cwd()))
    audits = []
    for function in functions:
        audits.append(audit(function, **arguments))
        if file != "-":
            print(text_report(audits[-1]) + "\n", flush=True)
    if len(audits) > 1 and file != "-":
        print(comparison(audits))
    if file is not None:
        written = json.dumps([as_json(each) for each in audits], indent=2)
        if file == "-":
            print(written)
        else:
            Path(file).write_text(written + "\n", encoding="utf-8")
    return 1 if any(each.findings for each in audits) else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = command_line(__name__, __doc__)
    command.add_argument("functions", nargs="+", metavar="FUNCTION", help="module:function, or a built-in verifier")
    command.add_argument(
        "--task",
        choices=[*TASKS, *BUILT_IN],
        metavar="TASK",
        help=f"what is asked: {', '.join([*TASKS, *BUILT_IN])}; default: math",
    )
    command.add_argument(
        "--column", action="append", default=[], dest="columns", metavar="NAME", help="parameter with the right answer"
    )
    command.add_argument(
        "--form",
        metavar="TEXT",
        help=f"how it wants answers, {ANSWER} for the answer; default: the first form it reads",
    )
    command.add_argument(
        "--gold", metavar="TEXT", default=ANSWER, help=f"how right answers stand in the column; default {ANSWER}"
    )
    command.add_argument("--data-source", metavar="NAME", default="audit", help="of verl's; default audit")
    command.add_argument(
        "--right-at",
        type=float,
        metavar="REWARD",
        help="paid from there on; default: half of the largest reward of a right answer",
    )
    command.add_argument("--seconds", type=float, help="for one call; default 5, of code 30")
    command.add_argument("--json", metavar="FILE", help="write JSON with every finding; - for standard output alone")
    return command


def text_report(audit: Audit) -> str:
    """How it was called, a table by kind of case, the findings by problem with a few cases each, and the time."""
    called = [f"{audit.signature}'s signature" if audit.signature != "verifier" else "a verifier"]
    called += [f"{audit.shape} as completions"] if audit.signature == "TRL" else []
    called += [f"reference in {', '.join(audit.columns)}"] if audit.columns and audit.signature == "TRL" else []
    lines = [f"{audit.function}: {'; '.join(called)}; task {audit.task}"]
    lines.append(f"answers written as {audit.form!r}; paid: a reward of at least {audit.right_at:g}")
    lines += [f"note: {note}" for note in audit.notes]
    width = max(map(len, KINDS.values())) + 2
    lines += ["", " " * width + "".join(f"{name:>{len(name) + 2}}" for name in COLUMNS)]
    for kind, title in KINDS.items():
        counts = _counts(audit, kind)
        if counts["asked"] or counts["not asked"]:
            cells = ("-" if counts[name] is None else str(counts[name]) for name in COLUMNS)
            cells = (f"{cell:>{len(name) + 2}}" for cell, name in zip(cells, COLUMNS, strict=True))
            lines.append(f"{title:<{width}}" + "".join(cells))
    by_problem: dict[str, list[Fault]] = {}
    for finding in audit.findings:
        by_problem.setdefault(finding.problem, []).append(finding)
    for problem, findings in by_problem.items():
        lines += ["", f"{problem}: {len(findings)}" if findings[0].asked else f"{problem}: {findings[0].detail}"]
        named = Counter(finding.asked.case.name for finding in findings if finding.asked)
        if len(findings) > SHOWN:
            most = [f"{name} {count}" for name, count in named.most_common(8)]
            lines.append(f"    {', '.join(most)}{', …' if len(named) > len(most) else ''}")
        one_of_each = {finding.asked.case.name: finding for finding in reversed(findings) if finding.asked}
        for name in [name for name, _ in named.most_common(SHOWN)]:
            asked = one_of_each[name].asked
            assert asked is not None
            lines.append(f"    {name}: {one_of_each[name].detail}")
            lines.append(f"        {_short(asked.case.completion)}  for  {_short(asked.case.row.reference)}")
    seconds = sorted((each.seconds, each.case.name) for each in audit.asked)
    slowest = ", ".join(f"{1000 * each:.3f} ms ({name})" for each, name in reversed(seconds[-3:]))
    middle = 1000 * median(each for each, _ in seconds)
    lines += ["", f"A call takes {middle:.3f} ms (median); the slowest: {slowest}."]
    found = f"{len(audit.findings)} findings" if audit.findings else "Nothing found"
    return "\n".join([*lines, f"{found} in {len(audit.asked)} cases."])


def comparison(audits: Sequence[Audit]) -> str:
    """One line for each function: what is wrong, of all kinds of cases together."""
    width = max(len(each.function) for each in audits) + 2
    lines = [" " * width + "".join(f"{name:>{len(name) + 2}}" for name in COLUMNS)]
    for one in audits:
        counts = [_counts(one, kind) for kind in KINDS]
        sums = ((name, sum(count[name] or 0 for count in counts)) for name in COLUMNS)
        lines.append(f"{one.function:<{width}}" + "".join(f"{number:>{len(name) + 2}}" for name, number in sums))
    return "\n".join(lines)


def as_json(audit: Audit) -> dict[str, Any]:
    """The same as a mapping for JSON, with every finding."""
    seconds = [each.seconds for each in audit.asked]
    kinds = {
        kind: {name.replace(" ", "_"): number for name, number in _counts(audit, kind).items() if number is not None}
        for kind in KINDS
    }
    findings: list[dict[str, Any]] = []
    for finding in audit.findings:
        findings.append({"problem": finding.problem, "detail": finding.detail})
        if (asked := finding.asked) is not None:
            case = asked.case
            findings[-1] |= {"kind": case.kind, "name": case.name, "reference": case.row.reference}
            findings[-1] |= {"completion": case.completion[:500], "reward": asked.reward, "seconds": asked.seconds}
    return {
        "function": audit.function,
        "ok": not audit.findings,
        "signature": audit.signature,
        "task": audit.task,
        "form": audit.form,
        "columns": audit.columns,
        "completions": audit.shape,
        "right_at": audit.right_at,
        "kinds": kinds,
        "seconds": {"median": median(seconds), "largest": max(seconds)},
        "findings": findings,
        "notes": audit.notes,
    }


def _counts(audit: Audit, kind: Kind) -> dict[str, int | None]:
    """By `COLUMNS`; ``None`` where it does not apply: a right answer is never paid wrongly, nor a wrong one refused."""
    asked = audit.of_kinds(kind)
    problems = Counter(
        finding.problem for finding in audit.findings if finding.asked and finding.asked.case.kind == kind
    )
    return {
        "asked": len(asked),
        "refused": problems["right answer refused"] if kind in RIGHT else None,
        "paid": None if kind in RIGHT else problems["wrong answer paid"] + problems["exploit paid"],
        "unjudged": problems["unjudged"],
        "fault": problems["fault"],
        "crash": problems["crash"],
        "over time": problems["over time"],
        "not asked": audit.not_asked.get(kind, 0),
    }


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    shown = repr(text)
    return f"{shown[:60]}… ({len(text)} characters)" if len(shown) > 90 else shown
