"""The seconds of a run are those of all its parts, killed ones too, in its summary, its metrics and its reports."""

import subprocess
import sys
import time
from pathlib import Path

from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.run_time import RunTime
from tests.paths import ROOT

UNTIL_KILLED = """
import sys, time
from pathlib import Path
from evenkeel.trainer.run.record import run_time
run_time.SECONDS_BETWEEN_WRITES = 0.02
with run_time.RunTime(Path(sys.argv[1])):
    print("begun", flush=True)
    time.sleep(60)
"""


def spent(run: Path, seconds: float) -> RunTime:
    with RunTime(run) as clock:
        time.sleep(seconds)
    return clock


def test_a_part_that_is_killed_counts(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNTIL_KILLED, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.6)
        process.kill()
    killed = RunRecord(tmp_path).seconds
    assert killed is not None
    assert 0.3 < killed < 10
    assert spent(tmp_path, 0.01).earlier == killed
