"""A bench for people and for programs."""

from typing import Any

from evenkeel.rewards.bench.bench import Bench, Finding

MOST_LISTED = 10


def as_table(bench: Bench) -> str:
    """The counts and times by kind of trial, what leaks, and the golds that nobody could judge."""
    lines = [f"{bench.name}: {bench.rows} rows, {bench.seconds_per_thousand:.3g} s per 1,000 completions"]
    lines.append(f"  {'':<12}{'tried':>7}{'right':>7}{'partly':>8}{'unjudged':>10}{'killed':>8}")
    lines[-1] += f"{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}"
    for kind, each in bench.measured.items():
        counts = f"{each.count:>7}{each.right:>7}{each.partly:>8}{each.unjudged:>10}{each.killed:>8}"
        lines.append(f"  {kind:<12}{counts}" + "".join(f"{1000 * each.percentile(p):>10.2f}" for p in (50, 99, 100)))
    if bench.without_gold:
        lines.append(f"  {bench.without_gold} rows hold no gold answer to write down")
    if bench.alike:
        lines.append(f"  {bench.alike} other rows' answers are right here as this row's are there: equal answers")
    lines += _listed("unjudged golds", bench.unjudged_golds)
    lines += _listed("LEAKS", bench.leaks) or ["  no leak"]
    return "\n".join(lines)


def as_json(bench: Bench) -> dict[str, Any]:
    """The same as a mapping that JSON can hold, with every finding."""
    return {
        "verifier": bench.name,
        "rows": bench.rows,
        "rows_without_gold": bench.without_gold,
        "equal_answers": bench.alike,
        "seconds_per_thousand": bench.seconds_per_thousand,
        "trials": {
            kind: {
                "count": each.count,
                "right": each.right,
                "partly": each.partly,
                "unjudged": each.unjudged,
                "killed": each.killed,
                "wall_seconds": each.wall,
                **{f"p{p}_seconds" if p < 100 else "max_seconds": each.percentile(p) for p in (50, 99, 100)},
            }
            for kind, each in bench.measured.items()
        },
        "unjudged_golds": [_finding(finding) for finding in bench.unjudged_golds],
        "leaks": [_finding(finding) for finding in bench.leaks],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    trial, verdict = finding.trial, finding.verdict
    return {
        "problem": finding.problem,
        "kind": trial.kind,
        "name": trial.name,
        "row": trial.row,
        "completion": trial.completion[:500],
        "score": verdict.score,
        "reason": verdict.reason,
        "seconds": verdict.seconds,
    }


def _listed(title: str, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    lines = [f"  {len(findings)} {title}:"]
    for finding in findings[:MOST_LISTED]:
        trial = finding.trial
        what = f"row {trial.row}, {trial.kind}, {trial.name}: {finding.problem}"
        lines.append(f"    {what}; {finding.verdict.reason[:100]}; {trial.completion[:60]!r}")
    return lines + ([f"    … and {len(findings) - MOST_LISTED} more"] if len(findings) > MOST_LISTED else [])
