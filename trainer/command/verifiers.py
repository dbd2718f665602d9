"""The built-in verifiers: what each judges, by the first line of its documentation.

evenkeel verifiers
"""

import argparse
import inspect
from collections.abc import Sequence

from evenkeel.rewards.parts import VERIFIERS


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    width = max(map(len, VERIFIERS)) + 2
    for name, verifier in VERIFIERS.items():
        print(f"{name:<{width}}{(inspect.getdoc(verifier) or '').partition(chr(10))[0]}")
    return 0
