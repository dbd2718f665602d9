"""Where the time of a step goes: phases exclude each other, are logged for every step, and leave evaluations out."""

import time
from pathlib import Path

import pytest

from evenkeel.trainer.step.phases import TIMED, Phases
from tests.trainer.training import digit_reward, ours


class Ticks:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def test_a_phase_inside_another_is_no_part_of_it(monkeypatch):
    ticks, clock = Ticks(monkeypatch), Phases()
    with clock("update"):
        ticks.now += 1
        with clock("prepare"):
            ticks.now += 2
            with clock("generate"):
                ticks.now += 4
            with clock("generate"):
                ticks.now += 8
            ticks.now += 16
        ticks.now += 32
        assert clock.is_timed
    ticks.now += 64
    assert not clock.is_timed
    seconds = {name.removeprefix("timing/").removesuffix("_s"): value for name, value in clock.end_step().items()}
    assert {name: value for name, value in seconds.items() if value} == {"update": 33, "prepare": 18, "generate": 12}
    assert set(seconds) == {*TIMED}
    assert not any(clock.end_step().values())


def test_every_log_holds_every_phase_and_they_add_up_to_the_step(tiny_model, tmp_path: Path):
    def slow(completions, **_):
        time.sleep(0.2)
        return digit_reward(completions)

    started = time.perf_counter()
    trainer = ours(tiny_model, tmp_path, reward=slow, num_iterations=2, beta=0.04, max_steps=3)
    whole = time.perf_counter() - started
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logs) == 3
    names = {f"timing/{name}_s" for name in TIMED}
    assert all({name for name in entry if name.startswith("timing/")} == names for entry in logs)
    generates, reuses = logs[0], logs[1]
    for name in ("generate", "verify_wait", "old_logps", "reference"):
        assert generates[f"timing/{name}_s"] > 0
        assert reuses[f"timing/{name}_s"] == 0
    assert generates["timing/verify_wait_s"] >= 0.2
    assert all(entry["timing/update_s"] > 0 and entry["timing/sync_s"] == 0 for entry in logs)
    assert logs[0]["timing/log_s"] == 0 < logs[1]["timing/log_s"]
    total = sum(entry[f"timing/{name}_s"] for entry in logs for name in TIMED)
    steps = sum(entry["step_time"] for entry in logs)
    assert steps <= total <= whole
