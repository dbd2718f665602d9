"""Plant one fault at a time in a copy of the checkout and see which fast test notices; status 1 where none does."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.faults import FAULTS, Fault
from tests.paths import ROOT

FAST = ["-n", "0", "-m", "not slow and not gpu and not standin", "-x", "-q", "-p", "no:cacheprovider"]
MISSED = "NOT CAUGHT"


def copied(copy: Path) -> Path:
    """The checkout's tracked files, and a virtual environment in which `evenkeel` is theirs and all else is as here."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    here, there = Path(sys.prefix), copy / ".venv"
    venv.create(there, symlinks=True)
    installed = Path(sysconfig.get_path("purelib"))
    (there / installed.relative_to(here) / "others.pth").write_text(f"{installed}\n")
    for file in (*installed.glob("__editable__*evenkeel*"), *(here / "bin").glob("evenkeel")):
        own = there / file.relative_to(here)
        own.write_text(file.read_text().replace(str(here), str(there)).replace(str(ROOT), str(copy)))
        own.chmod(file.stat().st_mode)
    # what any process of this interpreter imports, whatever its environment and working directory
    ask = "import evenkeel.trainer as t, evenkeel.rewards as r; print(t.__file__, r.__file__)"
    said = subprocess.check_output([there / "bin/python", "-c", ask], cwd="/", env={}, text=True)
    assert said.split() == [str(copy / room / "__init__.py") for room in ("trainer", "rewards")], said
    return copy


def first_failure(copy: Path, tests: str) -> str:
    """The first of the fast ``tests`` that fails in the copy; empty where none does."""
    environment = {**os.environ, "PATH": f"{copy / '.venv/bin'}:{os.environ['PATH']}", "PYTHONPATH": ""}
    command = [copy / ".venv/bin/python", "-m", "pytest", *FAST, tests]
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if bool(failed) == (ended.returncode in (0, 5)):  # 5: nothing there is fast
        raise RuntimeError(f"pytest {tests} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return failed[0].partition(" ")[2].partition(" - ")[0] if failed else ""


def outcome(fault: Fault, copies: "SimpleQueue[Path]") -> str:
    """The test that fails with the fault and passes without it, and the seconds until it failed."""
    started, copy = time.monotonic(), copies.get()
    try:
        with fault.planted(copy):
            found = next(filter(None, (first_failure(copy, tests) for tests in fault.tests)), "")
        seconds = time.monotonic() - started
        if found and first_failure(copy, found):
            found = f"{MISSED}: {found} fails without it too"
        return f"{found or MISSED} | {seconds:.0f}"
    finally:
        copies.put(copy)


def main() -> int:
    parser = ArgumentParser("python -m tests.faults", description="which fast test notices each planted fault")
    parser.add_argument("names", nargs="*", metavar="NAME", help="those faults alone")
    parser.add_argument("--workers", type=int, default=1, help="copies of the checkout that are tried at once")
    given = parser.parse_args()
    chosen, copies = [FAULTS[name] for name in given.names or FAULTS], SimpleQueue[Path]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.workers) as pool:
        for number in range(given.workers):
            copies.put(copied(Path(folder).resolve() / str(number)))
        sys.stdout.write("| fault | caught by | seconds |\n|---|---|--:|\n")
        status = 0
        for fault, found in zip(chosen, pool.map(lambda fault: outcome(fault, copies), chosen), strict=True):
            status = max(status, int(found.startswith(MISSED)))
            sys.stdout.write(f"| {fault.name} | {found} |\n")
            sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
