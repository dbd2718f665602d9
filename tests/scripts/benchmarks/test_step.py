"""The benchmark of the whole step: waiting is waiting, hidden is hidden, and what is ours is found by itself."""

import math
import time

import pytest

from evenkeel.trainer.step.loss import Loss
from scripts.benchmarks.step import GENERATION, OURS, TRLS, VERIFICATION, hidden_table, share_of, total, whole_steps
from scripts.benchmarks.update import Size, SyntheticRollouts

TINY = Size(128, 1, 32, "float32", 2, 2, 2, 4, 8, 16)


def test_waits_are_the_stated_ones_and_ours_is_what_stock_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Loss.start_rollout
    monkeypatch.setattr(Loss, "start_rollout", lambda *given: (time.sleep(0.3), start(*given))[1])
    stock, ours = ("stock", 100.0, 0.5), ("a run file's", math.inf, 0.5)
    found = whole_steps(TINY, [stock, ours], rounds=1, say=lambda line: None)
    (trls,), (mine,) = found[stock], found[ours]
    rollouts = SyntheticRollouts(TINY, half_dead=False)
    rollouts.number = 1
    assert share_of(trls, TRLS, GENERATION) * total(trls) >= int(rollouts.lengths().sum()) / 100
    assert share_of(trls, TRLS, VERIFICATION) * total(trls) >= 0.5
    assert share_of(trls, OURS) == 0
    assert mine["timing"]["timing/verify_wait_s"] > 0.4  # nothing is scored that it could run beside
    assert share_of(mine, OURS, ["_generate_and_score_completions"]) * total(mine) >= 0.3
    assert "| none can |" in [*hidden_table(found)][-1]
