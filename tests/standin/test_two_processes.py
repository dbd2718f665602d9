"""Two ranks on the stand-in device, with collectives as NCCL's: no CPU tensor, no shape that differs between ranks."""

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.standin import device
from tests.standin.mutants import MUTANTS_OF_TWO

pytestmark = pytest.mark.slow

REFUSED = dict.fromkeys(MUTANTS_OF_TWO, "No backend type associated with device type cpu")
REFUSED["tokens of another width on one rank"] = "the ranks disagree"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str | None]]:
    """What each of the two ranks raised, by the name of the case or of the planted error."""
    if (reason := device.why_not()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("two_processes")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launcher, "-m", "tests.standin.two_processes", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


def test_all_cases_run_and_resume(found):
    assert len(found[0]) == 11 + len(MUTANTS_OF_TWO)
    wrong = [{name: error for name, error in rank.items() if error and name not in MUTANTS_OF_TWO} for rank in found]
    assert wrong == [{}, {}]


@pytest.mark.parametrize("name", MUTANTS_OF_TWO)
def test_a_planted_error_is_refused_on_both_ranks(name: str, found):
    assert all(rank[name] is not None and rank[name].startswith(REFUSED[name]) for rank in found)
