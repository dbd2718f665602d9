"""Reward functions with TRL's signature: what they get, and what becomes of what they return."""

import os
import pkgutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenkeel.rewards import RewardFunction, build_verifier, reward_functions
from tests.rewards.test_reward_function import Logs

HERE = "tests.rewards.user_verifiers.written"


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
