"""Report on a run or a sweep: the verdict first, then its grounds, as one HTML page and as Markdown.

python scripts/report.py runs/quickstart                        # report.html and report.md in the directory
python scripts/report.py runs/sweeps/quickstart --output seven_ways.html
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trainer.comparison.reports import ReportError, write_report


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 written, 2 nothing to report on."""
    arguments = parse_arguments(argv)
    try:
        report, page = write_report(arguments.directory, arguments.output, arguments.threshold)
    except ReportError as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    print(report.headline)
    for contrast in report.main.contrasts if report.main else []:
        print(f"  {contrast.variant}: {contrast.verdict.sentence}")
    print(f"{page}\n{page.with_suffix('.md')}")
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("directory", type=Path, help="of a run, or of a sweep")
    parser.add_argument("--output", type=Path, help="the HTML file; the Markdown goes beside it")
    parser.add_argument("--threshold", type=float, help="held-out accuracy to which runs are timed")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
