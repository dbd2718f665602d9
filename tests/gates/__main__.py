"""The command line of `scripts/gates.sh`.

Exit status 0: all rows pass, 1: one fails, 2: wrong usage, 3: one could not be run.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from tests.gates.gate import Options, Row, scored
from tests.gates.rows import GATES

EPILOG = "Rows:\n" + "\n".join(f"  {'fast' if gate.fast else '':<5} {gate.name:<18} {gate.proves}" for gate in GATES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen rows, each printed when it is done, and the table again at the end."""
    command = argparse.ArgumentParser(
        prog="scripts/gates.sh",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("rows", nargs="*", metavar="ROW", help="names of rows, 'fast' or 'all'; default all")
    command.add_argument("--trainer", default=Options.trainer, metavar="MODULE:CLASS", help="default %(default)s")
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="processes side by side; default: cores")
    command.add_argument("--record", action="store_true", help="put what is measured on record: read the diff")
    command.add_argument("--verbose", action="store_true", help="also say each setting's result when it is there")
    chosen = command.parse_args(arguments)
    known = {gate.name for gate in GATES} | {"fast", "all"}
    if unknown := [name for name in chosen.rows if name not in known]:
        command.error(f"no row is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    names = {*chosen.rows} or {"all"}
    gates = [gate for gate in GATES if gate.name in names or "all" in names or (gate.fast and "fast" in names)]

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    options = Options(chosen.trainer, chosen.jobs, say if chosen.verbose else lambda _: None)
    rows: list[Row] = []
    for number, gate in enumerate(gates, start=1):
        say(f"… {number} of {len(gates)}: {gate.name}")
        rows.append(scored(gate, options, record=chosen.record))
    say("\n" + "\n".join(map(str, rows)))
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("PASS", "FAIL", "NOT RUN")}
    say("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["FAIL"] else 3 if counts["NOT RUN"] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what a row has started is ended with it
    sys.exit(main())
