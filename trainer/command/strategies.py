"""Every built-in strategy with its source and what was verified, and the signals that one of your own may name.

evenkeel strategies
evenkeel strategies markdown
evenkeel strategies signals
"""

import argparse
from collections.abc import Sequence

from evenkeel.trainer.algorithms.registry import signal_listing, strategy_listing


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="plain", choices=("plain", "markdown", "signals"))
    what = parser.parse_args(argv).what
    print(signal_listing() if what == "signals" else strategy_listing(what))
    return 0
