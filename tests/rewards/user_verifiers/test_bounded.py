"""A user's verifier that sleeps, exits, crashes or returns a bare number; a reward function with TRL's signature."""

import os
import pkgutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from evenkeel.rewards import RewardFunction, Verdict, build_verifier, reward_functions
from evenkeel.rewards.user_verifiers import UserVerifier, bounded
from evenkeel.rewards.verifier import TokenVerifier
from tests.rewards.test_reward_function import Logs
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


OF_TRL: dict[str, dict[str, Any]] = {"think_format_reward": {}, "accuracy_reward": {}}
OF_TRL |= {"reasoning_accuracy_reward": {"reasoning_delimiters": ["so"]}, "get_cosine_scaled_reward": {"max_len": 7}}
OF_TRL |= {"get_soft_overlong_punishment": {"max_completion_len": 4, "soft_punish_cache": 3}}
OF_TRL["get_repetition_penalty_reward"] = {"ngram_size": 1}


def batch(*texts: str, **columns: Any) -> dict[str, Any]:
    completions = [[{"role": "assistant", "content": text}] for text in texts]
    return {"prompts": [[{"role": "user", "content": "?"}]] * len(texts), "completions": completions, **columns}


@pytest.mark.parametrize(("name", "options"), OF_TRL.items())
def test_each_of_trls_own_gives_the_rewards_that_trl_gets(name: str, options: dict[str, Any]) -> None:
    texts = ["<think>a</think> so \\boxed{5}", "so \\boxed{6}", "5", ""]
    rows = batch(*texts, solution=["$5$", "$5$", "", "$5$"], completion_ids=[[1, 2, 1], [3], [4] * 5, []])
    function = pkgutil.resolve_name(f"trl.rewards:{name}")
    theirs = function(**options)(**rows) if name.startswith("get_") else function(**rows, **options)
    ours = RewardFunction(build_verifier({"name": f"trl.rewards:{name}", **options}), "it")
    ours._bounded = ours.verifier  # in this process
    assert ours(reference=rows.pop("solution"), **rows) == theirs  # a usual name of the reference
    assert len({*theirs}) > 1


def test_it_gets_what_trl_passes_in_a_process_of_its_own_and_what_it_logs_is_logged() -> None:
    reward, logs = RewardFunction(build_verifier({"name": f"{HERE}:of_trl", "scale": 0.1}), "mine"), Logs()
    rows = batch("a", "b", "none", solution=["a"] * 3, level=[1, 2, 3], trainer_state=SimpleNamespace(global_step=7))
    assert reward(**rows, **logs.hooks) == [0.1, 0.0, None]
    assert [each.partition(", ")[2] for each in logs.columns["mine/reason"]] == ["level 1", "level 2", "level 3"]
    assert logs.columns["mine/reason"][0].split()[1] != f"{os.getpid()},"
    assert logs.metrics["mine/step"] == [7.0]
    assert logs.metrics["verifier/mine/frac_unscored"] == [0.0, 0.0], "None is not applicable, and no failure"
    for fault, said in {"crash": "SIGSEGV", "short": "2 rewards for 3", "raise": "no such row", "sleep": "= 3"}.items():
        assert reward(**batch("a", "b", fault, solution=["a"] * 3), **logs.hooks) == [None] * 3
        assert said in logs.columns["mine/reason"][0]


def test_a_row_to_which_one_does_not_apply_has_the_rewards_of_the_others_as_in_trl() -> None:
    def but(text: str) -> Any:
        return build_verifier(lambda completions: [{text: None}.get(each[0]["content"], 1.0) for each in completions])

    functions = reward_functions({"a": but("a"), "b": but("a"), "c": but("c")}, only_measure=["c"])
    assert [function(**batch("a", "b", "c")) for function in functions[:2]] == [[None, 1.0, 1.0]] * 2
    assert functions[2](**batch("a", "b", "c")) == [None, 1.0, None], "one of weight 0 pays nothing for a"
    functions = reward_functions({"a": but("a"), "b": but("b")})
    assert [function(**batch("a", "b")) for function in functions] == [[None, 1.0], [1.0, None]]


def test_asynchronous_ones_run_at_the_same_time(tmp_path: Path) -> None:
    specs = [{"name": f"{HERE}:meets", "folder": str(tmp_path), "file": file} for file in "ab"]
    first, _ = reward_functions({spec["file"]: build_verifier(spec) for spec in specs})
    assert first(**batch("a")) == [1.0]
