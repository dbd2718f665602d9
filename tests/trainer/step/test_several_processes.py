"""Two processes: every rank makes the same collectives, whatever its hash seed and rows; a resume goes on exactly."""

import json
import math
from pathlib import Path

import pytest

from tests.trainer.training import run_on

PREAMBLE = """
import json, os, sys
rank = os.environ["RANK"]
if os.environ.get("PYTHONHASHSEED") != str(int(rank) + 1):  # sets of names are looked through in another order
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": str(int(rank) + 1)})
from pathlib import Path
import torch
from tests.trainer.training import digit_reward, max_difference, ours
from evenkeel.trainer.algorithms.groups import finished, group_mean

model, output = Path(sys.argv[1]), Path(sys.argv[2])
settings = dict(per_device_train_batch_size=4, num_generations=4)
"""

SIGNALS = """
seen = []

def curious(rewards, group_size, old_logps, entropies, completion_ids, lengths, sequence_weights, sum_pi_squared):
    scores = (old_logps, entropies, sum_pi_squared)
    seen.append([float(x.double().sum()) for x in (*scores, completion_ids, lengths, sequence_weights)])
    return finished(rewards - group_mean(rewards, group_size), rewards, group_size)

def partly_scored(completions, log_extra=None, **_):
    log_extra("correct", [0.5 if rank == "1" else 1.0] * len(completions))
    log_extra("lengths", ["a word"] * len(completions))
    return digit_reward(completions)

ours(model, output / "signals", reward=partly_scored, strategies={"advantage": curious}, max_steps=2, **settings)
"""

TURNS = """
from types import SimpleNamespace
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.step.advantages import Advantages
from tests.trainer.step.setups import setup_of

args = SimpleNamespace(num_generations=2)
advantages = Advantages(setup_of(args))
mask = torch.tensor([[1, 0, 1, 0, 1], [1, 1, 0, 0, 0]]) if rank == "1" else torch.tensor([[1, 0, 1], [1, 1, 1]])

def signals(**columns):
    position = SimpleNamespace(step=0, max_steps=1)
    rollout = SimpleNamespace(
        batch={}, columns=columns, mask=mask, position=position, rewards_per_function=torch.zeros(4, 1)
    )
    return advantages.signals(rollout)

logged = [[0.5, 1.0, 2.0], [4.0]] if rank == "1" else [[8.0], []]
found = signals(turn_rewards=logged, state_keys=[["a", "b", "a"][: len(paid)] for paid in logged])
keys = found["state_keys"]
paid = [found["turn_rewards"].tolist(), [[row.index(key) for key in row] for row in keys.tolist()], keys.tolist()]
paid.append(signals(**{"turn_rewards": logged} if rank == "0" else {})["turn_rewards"])
try:
    signals(turn_rewards=[1.0, 2.0] if rank == "1" else logged)["turn_rewards"]
except PartError as error:
    paid.append("refused")
"""

QUEUES = """
settings |= dict(max_steps=8, loss_type="dapo", save_strategy="steps", save_steps=3)
stale = {"staleness": 2}
straight = ours(model, output / "straight", strategies=stale, **settings)
torch.manual_seed(99)
checkpoint = str(output / "straight" / "checkpoint-3")
resumed = ours(model, output / "resumed", strategies=stale, resume_from_checkpoint=checkpoint, **settings)
ages = [line["lag/rollout_batches"] for line in resumed.state.log_history[:-1]]
queues = [max_difference(straight, resumed), ages]
(output / f"rank-{rank}.json").write_text(json.dumps([seen, paid, queues]))
"""


def on_two_processes(script: str, model: Path, folder: Path) -> list:
    run_on(2, PREAMBLE + script, model, folder)
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.slow
def test_ranks_agree_on_signals_turns_and_queues(tiny_model, tmp_path: Path):
    first, second = on_two_processes(SIGNALS + TURNS + QUEUES, tiny_model, tmp_path)
    assert repr(first) == repr(second)
    signals, turns, queues = first
    assert signals[-1][0] < 0 < signals[-1][1]  # log-probabilities, entropies: not one for the other
    paid, places, keys, absent, outcome = turns
    nan = math.nan
    assert repr(paid) == repr([[8.0, 0.0, nan], [0.0, nan, nan], [0.5, 1.0, 2.0], [4.0, nan, nan]])
    assert places == [[0, 1, 1], [0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert keys[0][0] == keys[2][0] == keys[3][0]  # "a" on either rank
    assert (absent, outcome) == (None, "refused")
    assert queues == [0.0, [0, 1, *[2] * 6]]
    assert len([*(tmp_path / "straight" / "checkpoint-3").glob("rollouts_ahead_*.pt")]) == 2
