"""Judging in a thread beside scoring: the results and the errors of judging without it, and what may not run there."""

import functools
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from evenkeel.rewards import build_verifier
from evenkeel.rewards.reward_function import RewardFunction
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.judging import EarlyCall, may_run_in_thread
from tests.trainer.training import digit_reward, max_difference, train

SCORED = {"num_iterations": 2, "beta": 0.04}
"""TRL scores π_old and the reference between generation and rewards."""
CLOCKS = ("_s", "_time", "_runtime", "_per_second")


class DigitFunction:
    """`digit_reward` that logs and notes where it runs; in a thread it does not end before the scoring has."""

    __name__ = "digits"

    def __init__(self, *, early: bool) -> None:
        self.may_run_in_thread = early
        self.threads: set[str] = set()
        self.scored = threading.Event()
        self.saw_scoring: list[bool] = []

    def __call__(self, completions, log_extra, log_metric, trainer_state, **_: Any) -> list[float | None]:
        self.threads.add(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            self.saw_scoring.append(self.scored.wait(60))
        scores = digit_reward(completions)
        log_extra("correct", [score == 1 for score in scores])
        log_metric("digits/mean", sum(scores) / len(scores))
        log_metric("digits/step", float(trainer_state.global_step))
        return [None if score == 0 else score for score in scores]


def trained(model: Path, folder: Path, function: Any, **settings: Any) -> RLVRTrainer:
    """A run that tells its reward function when the reference has scored a rollout batch."""
    scored = getattr(function, "scored", threading.Event())

    class Telling(RLVRTrainer):
        def _generate(self, prompts):
            scored.clear()
            return super()._generate(prompts)

        def _get_per_token_logps_and_entropies(self, model, *positional, **keywords):
            result = super()._get_per_token_logps_and_entropies(model, *positional, **keywords)
            if model is self.ref_model:
                scored.set()
            return result

    return train(Telling, model, folder, reward=function, **{**SCORED, **settings})


def logged(trainer: RLVRTrainer) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in entry.items() if not name.endswith(CLOCKS)}
        for entry in trainer.state.log_history
    ]


def test_early_judging_runs_overlapped_and_changes_nothing(tiny_model, tmp_path: Path):
    early, late = DigitFunction(early=True), DigitFunction(early=False)
    first, second = trained(tiny_model, tmp_path / "early", early), trained(tiny_model, tmp_path / "late", late)
    assert (early.threads, late.threads) == ({"early-judging"}, {"MainThread"})
    assert early.saw_scoring == [True, True]  # 3 steps, 2 rollout batches
    assert max_difference(first, second) == 0.0
    assert logged(first) == logged(second)
    assert first._logs["extra"] == second._logs["extra"]
    assert first.state.log_history[0]["timing/verify_s"] > first.state.log_history[0]["timing/verify_wait_s"]


class UnusableError(Exception):
    """What no library raises."""


def refuses(**_: Any) -> list[float]:
    raise UnusableError("no verdict for 3 of them")


refuses.may_run_in_thread = True  # type: ignore[attr-defined]


def test_what_a_function_raises_in_the_thread_is_raised_where_trl_calls_it(tiny_model, tmp_path: Path):
    with pytest.raises(UnusableError, match=r"^no verdict for 3 of them$") as raised:
        train(RLVRTrainer, tiny_model, tmp_path, reward=refuses)
    assert any(entry.name == "_calculate_rewards" for entry in raised.traceback)
    assert raised.traceback[-1].name == "refuses"


def arguments(**others: Any) -> dict[str, Any]:
    return {"prompts": ["p"], "completions": ["c"], "completion_ids": [[1]], "trainer_state": object(), **others}


def test_a_call_hands_over_result_and_logs_in_order_where_the_arguments_are_the_same_objects():
    calls, found = [], []
    column = ["a"]

    def function(reference, log_extra, log_metric, **_):
        calls.append(reference)
        values = [1.0]
        log_extra("x", values)
        values.append(2.0)  # too late
        log_metric("y", 0.5)
        log_extra("x", range(1))
        return [1.0]

    given = arguments(reference=column)
    call = EarlyCall(function, given)
    call.run()
    loggers = {"log_extra": lambda *logged: found.append(logged), "log_metric": lambda *logged: found.append(logged)}
    assert call(**{**given, "reference": list(column)}, **loggers) == [1.0]
    assert found == [("x", [1.0]), ("y", 0.5), ("x", [0])]
    assert len(calls) == 1


async def asynchronous(**_: Any) -> list[float]:
    return []


def plain(**_: Any) -> list[float]:
    return []


def test_only_plain_functions_that_say_so_may_run_in_a_thread():
    model, partial = torch.nn.Linear(1, 1), functools.partial(asynchronous)
    for function in (model, partial, asynchronous):
        function.may_run_in_thread = True
    assert not any(map(may_run_in_thread, (model, partial, asynchronous, plain)))
    assert may_run_in_thread(refuses)
    assert may_run_in_thread(RewardFunction(build_verifier("exact_match"), "exact"))
    assert not may_run_in_thread(RewardFunction(build_verifier(lambda completion, reference: 0.0), "closure"))


def test_a_function_that_fails_waits_for_the_judgement_under_way_and_its_error_is_the_one(tiny_model, tmp_path: Path):
    over = []

    def fails(**_):
        raise UnusableError("by itself")

    def slow(completions, **_):
        time.sleep(0.3)
        over.append(True)
        return [0.0] * len(completions)

    slow.may_run_in_thread = True
    with pytest.raises(UnusableError, match="by itself"):
        train(RLVRTrainer, tiny_model, tmp_path, reward=[fails, slow])
    assert over == [True]
    assert "early-judging" not in {thread.name for thread in threading.enumerate()}
