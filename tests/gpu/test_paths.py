"""Every path that needs a GPU, tried on this machine in turn, within a quarter of an hour: passed, failed or skipped.

    bash scripts/test.sh -m gpu -n 0 --table                 # gpu_acceptance.json, and its table on the terminal
    bash scripts/test.sh -m gpu -n 0 --table -k "zero2 or fsdp2" --model Qwen/Qwen2.5-0.5B-Instruct
    bash scripts/test.sh -m gpu -n 0 --table --cpu           # what can be tried without a GPU
    python -m tests.gpu.table                                # the list of them: what each is to find out
    python -m tests.gpu.table gpu_acceptance.json            # the table of an earlier run, for a README

They are what docs/devices.md lists as not known without a GPU, in that order. Each trains a tiny policy for a few
steps, in processes of its own. What cannot run here is skipped with the reason, and "not run" in the table, never
passed.
"""

from typing import Any

import pytest

from tests.gpu.catalogue import paths
from tests.gpu.conftest import Acceptance
from tests.gpu.running import FAILED, NOT_RUN, attempt


@pytest.mark.gpu
@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_path(path: Any, acceptance: Acceptance, record_property: Any):
    outcome = attempt(path, acceptance.place, acceptance.seconds_left)
    acceptance.outcomes.append(outcome)
    for name, value in outcome["facts"].items():
        record_property(name, value)
    if outcome["status"] == NOT_RUN:
        pytest.skip(outcome["reason"])
    if outcome["status"] == FAILED:
        pytest.fail(f"{outcome['reason']}; see {acceptance.place.folder / outcome['log']}")
