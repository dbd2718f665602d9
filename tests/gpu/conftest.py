"""Where the paths run, what became of each, and the table of it at the end."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.machine import this_machine
from tests.gpu.paths import Place
from tests.gpu.table import table
from tests.paths import ROOT


@dataclass
class Acceptance:
    """One acceptance run; ``outcomes`` grows path by path."""

    place: Place
    minutes: float
    started: float = field(default_factory=time.monotonic)
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds_left(self) -> float:
        """Of the minutes for all paths together."""
        return 60 * self.minutes - (time.monotonic() - self.started)

    def as_json(self) -> dict[str, Any]:
        """Every outcome so far, with the machine, the packages and the code."""
        revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
        return {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "device": self.place.machine.device,
            "revision": revision.stdout.strip() or None,
            "model": self.place.model or "configs/tiny_policy/countdown",
            "packages": self.place.machine.packages,
            "seconds": round(time.monotonic() - self.started, 1),
            "paths": self.outcomes,
        }


ACCEPTANCE = pytest.StashKey[Acceptance]()


@pytest.fixture(scope="session")
def acceptance(pytestconfig: pytest.Config) -> Iterator[Acceptance]:
    """One for all paths: what later ones look at is made by earlier ones."""
    options = pytestconfig.option
    if hasattr(pytestconfig, "workerinput"):
        pytest.fail("paths look at what earlier ones made: add -n 0")
    machine = this_machine(cpu=options.cpu)
    if not machine.gpus and not options.cpu:
        pytest.skip("no CUDA device here; --cpu tries what can be tried without")
    folder = options.json.absolute().with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = pytestconfig.stash[ACCEPTANCE] = Acceptance(Place(folder, options.model, machine), options.minutes)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runs, in sessions of their own, end with us
    yield found
    signal.signal(signal.SIGTERM, before)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table, and its numbers as JSON."""
    if not config.option.table or (found := config.stash.get(ACCEPTANCE, None)) is None:
        return
    path: Path = config.option.json
    path.write_text(json.dumps(found.as_json(), indent=2) + "\n")
    terminalreporter.write_line(f"\n{table(found.as_json())}\n\n{path}; logs in {found.place.folder}")
