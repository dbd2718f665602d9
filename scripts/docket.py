"""The docket: every claim of configs/claims with its answer, from the certificates beside them, as docs/docket.md.

    python scripts/docket.py            # writes docs/docket.md
    python scripts/docket.py --print

A claim that is in no certificate was not run. `evenkeel claim --verify` says what has changed since a certificate.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from evenkeel.trainer.lab.claims.certificate import SUFFIX, read_certificate
from evenkeel.trainer.lab.claims.claim import Claim, load_claims
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS

ROOT = Path(__file__).parents[1]
CLAIMS, PAGE = ROOT / "configs" / "claims", ROOT / "docs" / "docket.md"
HEAD = """\
# Docket

```bash
evenkeel claim claims/order            # runs a claim's sweep, or goes on with it, and writes its certificate
python scripts/docket.py               # writes this page from configs/claims
```

What papers say, asked of policies of 0.4 M to 6.4 M parameters on two cores: each claim is answered by a sweep,
and is supported, contradicted or not decided by the rule of [claims](../trainer/lab/README.md#claims), which is wrong
for equals in 5 % at most. Differences are of
held-out accuracy, or of the outcome that is named, with 95 % intervals; an answer holds for the sweep's task and
policy. A claim that is not decided says how many seeds would find its smallest difference
that matters in 80 % of sweeps; "what matters excluded": the claimed effect is absent or smaller than that.
"""
SMALLER = {"not decided": ", what matters excluded", "supported": ", by less than what matters"}
"""What is said of an answer whose interval ends below the smallest difference that matters."""
MEASURED = {
    "update_figures runs/figures": (
        "Figures 1e, 1f and 3 of arXiv 2505.12929",
        "One plain SGD step. Expected before the runs: of sure right tokens more rise by Lopti than by AR, and by AR\n"
        "than by GRPO; the rarest quarter alone moves frozen tokens further than the surest. Intervals are 95 %.",
    ),
    "trend runs/sweeps/docket_groups --baseline gspo": (
        "Whether a gain grows with the group, arXiv 2604.13088 v1",
        "The paper's gain over GSPO grows from 3.1 points with groups of 2 to 5.7 with 16: .009 for each doubling.",
    ),
}
"""Command of scripts/research → what its tables are about, and what was expected; they stand beside the claims."""
COLUMNS = ("claim", "source", "answer", "difference", "seeds it takes", "cost")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--print", action="store_true", help="print the page and write nothing")
    if command.parse_args(argv).print:
        print(page(CLAIMS), end="")
    else:
        PAGE.write_text(page(CLAIMS), encoding="utf-8")
    return 0


def page(folder: Path) -> str:
    """The page, of all claims in a folder, by the paper that comes first in their source."""
    by_paper: dict[str, list[list[str]]] = defaultdict(list)
    for path in sorted(folder.glob("*.yaml")):
        certificate = path.with_name(path.stem + SUFFIX)
        answers = read_certificate(certificate)["answers"] if certificate.exists() else {}
        for name, claim in load_claims(path)[0].items():
            papers = re.findall(r"arXiv [\d.]*\d", claim.source)
            by_paper[papers[0] if papers else "Controls"].append(_row(path, claim, answers.get(name)))
    counted = Counter(row[2] for rows in by_paper.values() for row in rows)
    number = sum(counted.values())
    summary = "; ".join(f"{count} {answer}" for answer, count in sorted(counted.items()))
    expected = 0.05 * (number - counted["not run"])
    lines = [HEAD, f"{number} claims: {summary}. Among equals {expected:.1f} would come out as answered.\n"]
    for paper, rows in sorted(by_paper.items()):
        lines += [f"## {paper}\n", f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        lines += [f"| {' | '.join(row)} |" for row in rows] + [""]
    for command, (title, stated) in MEASURED.items():
        if (file := folder / f"{command.split()[0]}.md").exists():
            lines += [
                f"## {title}\n",
                f"`python -m scripts.research.{command}`: {stated}\n",
                file.read_text(encoding="utf-8"),
            ]
    return "\n".join(lines)


def _row(path: Path, claim: Claim, answer: dict[str, Any] | None) -> list[str]:
    linked = f"[{claim.claim.removesuffix('.')}](../configs/claims/{path.name})"
    if answer is None:
        tested = f"`{claim.variant}` against {', '.join(f'`{name}`' for name in claim.against)}"
        return [linked, claim.source, "not run", tested, "", ""]
    shown = f"**{answer['answer']}**"
    if answer["excludes_what_matters"]:
        shown += SMALLER.get(answer["answer"], "")
    reason = answer.get("reason", "")
    needed = str(max(FEWEST_SEEDS, answer["seeds_needed"])) if answer["seeds_needed"] else "more than 1,000"
    return [
        linked,
        claim.source,
        shown,
        reason or "<br>".join(_difference(claim, name, each) for name, each in answer["differences"].items()),
        needed if answer["answer"] == "not decided" and not reason else "",
        _cost(answer["cost"]),
    ]


def _difference(claim: Claim, other: str, difference: dict[str, Any]) -> str:
    sign = claim.sign
    low, high = sorted((sign * difference["low"], sign * difference["high"]))
    seeds = f"{difference['num_seeds']} seeds"
    what = "" if claim.outcome == "accuracy" else f"{claim.outcome}, "
    return f"{what}`{claim.variant}` − `{other}`: {sign * difference['value']:+.3f} [{low:+.3f}, {high:+.3f}], {seeds}"


def _cost(cost: dict[str, Any]) -> str:
    hours = "" if cost["core_hours"] is None else f", {cost['core_hours']:.2f} core hours"
    tokens = "" if cost["tokens"] is None else f", {cost['tokens'] / 1e6:.1f} M tokens"
    return f"{cost['cells']} cells{hours}{tokens}"


if __name__ == "__main__":
    sys.exit(main())
