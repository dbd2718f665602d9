"""A user's verifier that sleeps, exits, crashes or returns a bare number, in its process and in this one."""

import os
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenkeel.rewards import RewardFunction, Verdict, build_verifier
from evenkeel.rewards.user_verifiers import UserVerifier, bounded
from evenkeel.rewards.verifier import TokenVerifier
from tests.rewards.user_verifiers.written import Batches

HERE = "tests.rewards.user_verifiers.written"


def own(spec: Any) -> UserVerifier:
    verifier = bounded(build_verifier(spec))
    assert isinstance(verifier, UserVerifier)
    return verifier


def test_a_result_with_an_obvious_meaning_has_it_and_another_is_unscored_and_named() -> None:
    obvious = ("verdict", "float", "int", "bool", "numpy", "score of numpy")
    others = {"text": "of type str", "tuple": "of type tuple", "None": "None"}
    completions = [f"{returned}: {word}" for returned in (*obvious, *others) for word in "56"]
    verdicts = own(f"{HERE}:as_named").judge_all(completions, ["5"] * len(completions))
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0] * 6 + [None] * 6
    assert all(type(verdict.score) is float for verdict in verdicts[:12])
    for verdict, said in zip(verdicts[12::2], others.values(), strict=True):
        assert (verdict.reason.startswith(f"{HERE}:as_named"), said in verdict.reason) == (True, True)


def test_a_row_at_which_it_ends_leaves_the_others_scored() -> None:
    """Also by ``os._exit(0)``, which would end a run with status 0."""
    completions = ["a", "raise", "exit", "crash", "b", "leave 0", "a"]
    verdicts = own(f"{HERE}:misbehaving").judge_all(completions, ["a"] * 7)
    assert [verdict.score for verdict in verdicts] == [1.0, None, None, None, 0.0, None, 1.0]
    said = {1: "LookupError: no such row", 2: "sys.exit(3)", 3: "ended by SIGSEGV", 5: "ended with exit code 0"}
    assert [words in verdicts[row].reason for row, words in said.items()] == [True] * 4
    assert [verdict.killed for verdict in verdicts] == [False, False, False, True, False, True, False]


@pytest.mark.parametrize("act", ["sleep", "hold"])
def test_one_that_sleeps_or_holds_the_interpreter_costs_its_batch_the_time_and_no_more(act: str) -> None:
    """A lambda: it is found by its path."""
    verifier = own(f"{HERE}:nameless")
    before = {child.pid for child in psutil.Process().children()}
    verdicts = verifier.judge_all(["a", act, "a"], ["a"] * 3)
    assert [verdict.score for verdict in verdicts] == [1.0, None, None]
    assert all("timeout_s = 1" in verdict.reason and verdict.killed for verdict in verdicts[1:])
    assert f"'{act}', reference 'a'" in verdicts[1].reason
    assert {child.pid for child in psutil.Process().children()} <= before, "its process is ended"
    assert verifier.judge_all(["a"], ["a"])[0].score == 1.0  # the next batch has its own time


@pytest.mark.parametrize("spec", [f"{HERE}:with_client", f"{HERE}:WithClient"])
def test_what_a_run_file_names_is_made_in_its_process_whatever_it_holds(spec: str) -> None:
    (verdict,) = own(spec).judge_all(["a"], ["a"])
    assert (verdict.score, verdict.reason == f"process {os.getpid()}") == (1.0, False)
    assert own(spec).gold_completion("any") == "a"


def test_one_that_no_process_can_import_is_called_here_as_trl_calls_reward_functions() -> None:
    called: list[Any] = []

    def closure(completion: str, reference: Any) -> float:
        called.append((os.getpid(), threading.current_thread()))
        return float({"a": 1}[completion])

    rows = {"prompts": [""] * 2, "completions": ["a", "b"], "reference": ["a"] * 2}
    assert RewardFunction(build_verifier(closure), "mine")(**rows) == [1.0, None]
    assert called == [(os.getpid(), threading.current_thread())] * 2


def test_one_that_judges_batches_does_so_in_its_process_and_what_has_limits_is_not_wrapped() -> None:
    verdicts = bounded(Batches()).judge_all(["a", "b"], ["a", "a"])
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0]
    assert verdicts[0].reason not in ("", f"process {os.getpid()}")
    verdicts = bounded(Batches(missing=1)).judge_all(["a", "b"], ["a", "a"])
    assert all(verdict.score is None and "1 verdicts for 2" in verdict.reason for verdict in verdicts)
    for verifier in (build_verifier("countdown"), own(f"{HERE}:misbehaving")):
        assert bounded(verifier) is verifier


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

    rows = [["a"]] * 2, [[1, 2]] * 2
    assert [each.score for each in bounded(Emptying()).judge_all(["a", "a"], *rows)] == [1.0, 1.0]
    assert rows == ([["a"]] * 2, [[1, 2]] * 2)
