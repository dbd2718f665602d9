"""A bench for people and for programs."""

from typing import Any

from evenkeel.rewards.bench.bench import Bench

MOST_LISTED = 10


def as_table(bench: Bench) -> str:
    """The counts and times by kind of trial, and what leaks."""
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
    lines.append(f"  {len(bench.leaks)} LEAKS:" if bench.leaks else "  no leak")
    for finding in bench.leaks[:MOST_LISTED]:
        trial = finding.trial
        what = f"row {trial.row}, {trial.kind}, {trial.name}: {finding.problem}"
        lines.append(f"    {what}; {finding.verdict.reason[:100]}; {trial.completion[:60]!r}")
    if len(bench.leaks) > MOST_LISTED:
        lines.append(f"    … and {len(bench.leaks) - MOST_LISTED} more")
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
        "leaks": [
            {
                "problem": finding.problem,
                "kind": finding.trial.kind,
                "name": finding.trial.name,
                "row": finding.trial.row,
                "completion": finding.trial.completion[:500],
                "score": finding.verdict.score,
                "reason": finding.verdict.reason,
                "seconds": finding.verdict.seconds,
            }
            for finding in bench.leaks
        ],
    }
