"""Objects in a process: what ends it costs rows and no run."""

import json
import os
import random
from typing import Any

import pytest

from evenkeel.rewards.environments import build_environment, user_objects
from tests.rewards.isolation.sandbox.processes import all_gone

PARTS = "tests.rewards.environments.parts"


def made(name: str = "Counting", **options: Any) -> Any:
    environment = build_environment({"name": f"{PARTS}:{name}", **options})()
    environment.reset()
    return environment


def test_a_call_that_holds_the_interpreter_ends_the_process_and_its_rows_and_the_next_rows_have_another(monkeypatch):
    monkeypatch.setattr(user_objects, "SECONDS_TO_ANSWER", 0.5)
    kind = build_environment({"name": f"{PARTS}:Unruly", "time_limit_s": 0.5})
    one, other = kind(), kind()
    for each in (one, other):
        each.reset()
    pids = json.loads(one.processes())
    assert pids[0] == json.loads(other.processes())[0], "one process for all rows"
    assert os.getpid() not in pids
    with pytest.raises(RuntimeError):
        one.hang()
    assert one.failure == "hang failed: TimeoutError: no answer within time_limit_s = 0.5"
    assert all_gone(pids, within_seconds=20)
    with pytest.raises(RuntimeError):
        other.count()
    assert "its object was lost with its process" in str(other.failure)
    for each in (one, other):
        each.reset()
        assert each.failure is None
        assert json.loads(each.processes())[0] not in pids


def test_an_object_is_reset_for_its_next_row_and_draws_from_the_stream_of_the_run():
    heard = []
    for _ in range(2):
        random.seed(7)
        environment = made()
        first = environment.count()
        environment.reset()
        heard.append((first, environment.count()))
    assert heard[0] == heard[1]
    assert [text.split(",")[0] for text in heard[0]] == ["row 1", "row 2"]
    assert len({text.split(",")[1] for text in heard[0]}) == 2
