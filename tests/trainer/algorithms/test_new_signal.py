"""A new signal is one entry in the table of signals and one line where it is computed: added in a copy, it arrives."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

ENTRY = ('        "probs": "(B, T) π_old', '        "surprisal": "(B, T) −log π_old",\n')
LINE = ("        probs=lambda: old_logps.exp(),\n", "        surprisal=lambda: -old_logps,\n")
USED = """
import sys
import torch
from evenkeel.trainer.algorithms.registry import signal_listing
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.algorithms.trial import tiny_example

def surprising(surprisal, mask):
    return surprisal * mask

weight = find_strategy("token_weight", surprising)
assert weight.signals == {"surprisal", "mask"}, weight.signals
strategies = build_strategies("dr_grpo", surprising)  # tried on the tiny example, where it found the signal
example = tiny_example()
assert torch.equal(example["surprisal"], -example["old_logps"])
assert "| `surprisal` | (B, T) −log π_old |" in signal_listing().splitlines()

# the bench: A = 1 − 1/2 and 0 − 1/2, w = −log 0.5 = 0.693 and −log 0.25 = 1.386, dapo divides by the batch's 2 tokens
from evenkeel.trainer.lab.gradients.contributions import ReplayedBatch, passes
logps = torch.tensor([[0.5], [0.25]]).log()
rewards, ones = torch.tensor([1.0, 0.0]), torch.ones(2, 1, dtype=torch.long)
batch = ReplayedBatch(rewards, rewards, rewards[:, None], torch.ones(1), [[3]], ones, ones, logps, logps, 2, 0, 10, {})
expected = torch.tensor([[0.5 * 0.6931 / 2], [-0.5 * 1.3863 / 2]])
torch.testing.assert_close(passes(strategies, batch, "dapo", 1)[0], expected, rtol=1e-4, atol=0)

# the page of rollouts
from evenkeel.trainer.lab.rollouts.tokens import WeighedTokens
row = {"completion_ids": [5], "mask": None, "advantages": None, "entropies": None, "group": 0, "reward": 1.0, "step": 0}
rows = [{**row, "advantage": 0.5, "old_logps": [-0.5]}, {**row, "advantage": -0.5, "old_logps": [-2.0]}]
assert WeighedTokens(strategies, 10).of_group(rows) == [0.25, -1.0]

# the trainer's loss
from collections import Counter
from accelerate import Accelerator
from trl import GRPOConfig
from evenkeel.trainer.step.loss import Loss
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Position, Schedule
settings = {"num_generations": 2, "per_device_train_batch_size": 2, "use_cpu": True, "bf16": False}
args = GRPOConfig(sys.argv[1], report_to="none", **settings)
options = {"epsilon_high": 0.2, "makes_ratio": False, "token_classes": None}
loss = Loss(args, strategies, Schedule.of(args, 1), Ranks(Accelerator(cpu=True)), **options)
zeros = torch.zeros(2).long()
labels = {"groups": zeros, "judged": zeros == 0, "row_keys": zeros, "shared_prefix": zeros}
labels |= {"completion_ids": ones, "completion_mask": ones}
loss.start_rollout({}, zeros, step=0)
with loss.of({**labels, "advantages": torch.tensor([0.5, -0.5])}, Position(0, 10, 0, 0)) as microbatch:
    loss.write_advantages(torch.tensor([[-0.5], [-2.0]]), None)
assert microbatch["advantages"].tolist() == [[0.25], [-1.0]]
"""


@pytest.mark.slow
def test_one_entry_and_one_line_reach_a_strategy_the_tiny_example_the_docs_the_bench_and_the_loss(tmp_path: Path):
    package = tmp_path / "evenkeel"
    for room in ("trainer", "rewards"):
        shutil.copytree(ROOT / room, package / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "trainer/public/__init__.py", package)
    for file, (place, added) in {"contract.py": ENTRY, "signals.py": LINE}.items():
        path = package / "trainer/algorithms" / file
        text = path.read_text()
        assert text.count(place) == 1
        path.write_text(text.replace(place, added + place))
    (tmp_path / "used.py").write_text(USED)
    ran = subprocess.run(
        [sys.executable, "used.py", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
