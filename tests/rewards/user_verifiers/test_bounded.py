"""A user's verifier that sleeps, exits, crashes or returns a bare number, in a thread and in a process."""

import os
import pickle
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenkeel.rewards import RewardFunction, Verdict, build_verifier
from evenkeel.rewards.isolation.workers import pool
from evenkeel.rewards.user_verifiers import UserVerifier, bounded
from evenkeel.rewards.user_verifiers.judging import worker_pool
from evenkeel.rewards.verifier import TokenVerifier, as_verdict
from tests.paths import ROOT
from tests.rewards.user_verifiers.written import Batches, of_numpy

HERE = "tests.rewards.user_verifiers.written"


def own(spec: Any) -> UserVerifier:
    verifier = bounded(build_verifier(spec))
    assert isinstance(verifier, UserVerifier)
    return verifier


@pytest.mark.parametrize("returns", ["verdict", "float", "int", "bool", "numpy", "score of numpy"])
def test_a_result_with_an_obvious_meaning_has_it(returns: str) -> None:
    verdicts = own({"name": f"{HERE}:last_word", "returns": returns}).judge_all(["so 5", "so 6"], ["5", "5"])
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0]
    assert all(type(verdict.score) is float for verdict in verdicts)


def test_a_verdict_of_numpys_values_is_plain_and_disturbs_no_later_batch() -> None:
    verifier = own(f"{HERE}:of_numpy")
    for batch, scores in [("abab", [1.0, 0.0, 1.0, 0.0]), ("bba", [0.0, 0.0, 1.0])]:
        verdicts = verifier.judge_all(list(batch), ["a"] * len(batch))
        assert [verdict.score for verdict in verdicts] == scores
    verdict = as_verdict(of_numpy("a", "a"))
    assert list(map(type, vars(verdict).values())) == [float, str, str, bool, float]
    assert (verdict.answer, verdict.reason, verdict.killed, verdict.seconds) == ("2020-01-01", "odd", False, 0.5)


@pytest.mark.parametrize(("returns", "said"), [("text", "of type str"), ("tuple", "of type tuple"), ("None", "None")])
def test_another_result_is_unjudged_and_named(returns: str, said: str) -> None:
    (verdict,) = own({"name": f"{HERE}:last_word", "returns": returns}).judge_all(["so 5"], ["5"])
    assert verdict.score is None
    assert said in verdict.reason
    assert verdict.reason.startswith(f"{HERE}:last_word")


def test_a_verdict_stays_what_it_is() -> None:
    verdict = Verdict(0.25, "x", "because", killed=True)
    assert as_verdict(verdict) == verdict
    assert as_verdict(Verdict(True, "x", "because")) == Verdict(1.0, "x", "because")
    assert as_verdict(None).score is None
    with pytest.raises(TypeError, match="not a verdict"):
        as_verdict([1.0])


@pytest.mark.parametrize("function", ["in_thread", "in_process"])
def test_one_bad_row_leaves_the_others_judged(function: str) -> None:
    completions = ["a", "raise", "exit", "interrupt", "b"]
    verdicts = own(f"{HERE}:{function}").judge_all(completions, ["a"] * 5)
    assert [verdict.score for verdict in verdicts] == [1.0, None, None, None, 0.0]
    said = [verdict.reason for verdict in verdicts]
    assert "LookupError: no such row" in said[1]
    assert "sys.exit(3)" in said[2]
    assert "KeyboardInterrupt" in said[3]


def test_a_crash_in_a_process_costs_its_row() -> None:
    verdicts = own(f"{HERE}:in_process").judge_all(["a", "crash", "a", "leave", "a"], ["a"] * 5)
    assert [verdict.score for verdict in verdicts] == [1.0, None, 1.0, None, 1.0]
    assert "ended by SIGSEGV" in verdicts[1].reason
    assert "ended with exit code 7" in verdicts[3].reason
    assert verdicts[1].killed


@pytest.mark.parametrize("function", ["in_thread", "in_process"])
def test_a_sleep_costs_its_batch_the_time_and_no_more(function: str) -> None:
    verifier = own(f"{HERE}:{function}")
    verifier.judge_all(["a"], ["a"])  # a process is started here
    started = time.monotonic()
    verdicts = verifier.judge_all(["a", "sleep", "a"], ["a"] * 3)
    assert time.monotonic() - started < 10
    assert [verdict.score for verdict in verdicts] == [1.0, None, None]
    assert f"timeout_s = {verifier.traits.timeout_s:g}" in verdicts[1].reason
    assert verdicts[1].killed
    assert verifier.judge_all(["a"], ["a"])[0].score == 1.0  # the next batch has its own time


def test_a_verifier_declared_picklable_that_is_not_is_said_for_every_row() -> None:
    def local(completion: str, reference: Any) -> bool:
        return completion == str(reference)

    local.picklable = True  # type: ignore[attr-defined]
    verdicts = own(local).judge_all(["a", "b"], ["a", "b"])
    assert all(verdict.score is None and "declared picklable" in verdict.reason for verdict in verdicts)


def test_one_that_judges_batches_does_so_in_its_process() -> None:
    verdicts = bounded(Batches()).judge_all(["a", "b"], ["a", "a"])
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0]
    assert verdicts[0].reason not in ("", f"process {os.getpid()}")
    verdicts = bounded(Batches(missing=1)).judge_all(["a", "b"], ["a", "a"])
    assert all(verdict.score is None and "1 verdicts for 2" in verdict.reason for verdict in verdicts)


def test_no_verifier_that_ships_is_wrapped() -> None:
    verifier = build_verifier("countdown")
    assert bounded(verifier) is verifier
    once = own(f"{HERE}:in_thread")
    assert bounded(once) is once


def test_a_reward_function_names_and_counts_what_is_unjudged(caplog: pytest.LogCaptureFixture) -> None:
    reward = RewardFunction(build_verifier(f"{HERE}:in_thread"), "mine")
    metrics: list[tuple[str, float]] = []
    rows = {"prompts": [""] * 3, "completions": ["a", "sleep", "a"], "reference": ["a"] * 3}
    assert reward(**rows, log_metric=lambda *pair: metrics.append(pair)) == [1.0, None, None]
    assert [value for name, value in metrics if name == "verifier/mine/frac_unjudged"] == [0.0, 1.0, 1.0]
    assert "left 2 of 3 completions unjudged" in caplog.text
    picklable = RewardFunction(build_verifier(f"{HERE}:in_process"), "mine")
    assert pickle.loads(pickle.dumps(picklable))(**(rows | {"completions": ["a"] * 3})) == [1.0] * 3


def test_the_worker_of_a_verifier_that_sleeps_is_ended() -> None:
    verifier = own(f"{HERE}:in_process")
    before = {child.pid for child in psutil.Process().children()}
    verifier.judge_all(["sleep"], ["a"])
    assert {child.pid for child in psutil.Process().children()} <= before


IN_MAIN = """
from evenkeel.rewards import build_verifier
from evenkeel.rewards.own_verifiers import bounded, traits

@traits(picklable=True)
def judge(completion, reference):
    return completion == reference

if __name__ == "__main__":
    print([verdict.score for verdict in bounded(build_verifier(judge)).judge_all(["a", "b"], ["a", "a"])])
"""


def test_a_verifier_of_the_script_itself_is_found_in_its_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_MAIN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=120)
    assert result.stdout == "[1.0, 0.0]\n", result.stderr


def test_what_a_taken_over_process_sends_is_data_and_is_never_run(tmp_path: Path) -> None:
    """It writes a pickle that would make a file, and a value that is no JSON, in the place of its verdict."""
    verifier = own({"name": f"{HERE}:taken_over", "file": str(tmp_path / "made")})
    verdicts = verifier.judge_all(["a"], ["a"])
    assert verdicts[0].score is None
    assert not (tmp_path / "made").exists()


def test_each_row_has_a_reference_and_token_ids_of_its_own() -> None:
    class Emptying(TokenVerifier):
        def __call__(self, completion: str, reference: Any, token_ids: Any = None) -> Verdict:
            right = reference.pop() == completion
            token_ids.clear()
            return Verdict(float(right), None, "")

    reference, token_ids = ["a"], [1, 2]
    verdicts = bounded(Emptying()).judge_all(["a", "a"], [reference] * 2, [token_ids] * 2)  # type: ignore[call-arg]
    assert [verdict.score for verdict in verdicts] == [1.0, 1.0]
    assert (reference, token_ids) == (["a"], [1, 2])


def test_a_row_that_takes_more_memory_than_declared_is_unjudged() -> None:
    verdicts = own(f"{HERE}:small").judge_all(["a", "300", "10", "a"], ["a"] * 4)
    assert [verdict.score for verdict in verdicts] == [1.0, None, 0.0, 1.0]
    assert "took more than memory_mb = 200" in verdicts[1].reason
    assert verdicts[1].killed


def test_after_a_crash_the_next_process_is_there_before_it_is_needed() -> None:
    verifier = own(f"{HERE}:in_process_again")
    verifier.judge_all(["leave"], ["a"])
    assert verifier.judge_all(["a"], ["a"])[0].score == 1.0  # starts its process and a spare one
    group = pool._groups[worker_pool(verifier.verifier)]
    (spare,) = group._busy
    with selectors.DefaultSelector() as selector:
        selector.register(spare, selectors.EVENT_READ)
        assert selector.select(60)  # ready, without anybody waiting for it
    verdicts = verifier.judge_all(["leave", "a"], ["a"] * 2)
    assert [verdict.score for verdict in verdicts] == [None, 1.0]
    assert group._idle == [spare]
    group.close()
