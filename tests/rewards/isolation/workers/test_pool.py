"""Real worker processes: what they return, how they are cut off, and that they end with their parent."""

import json
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenkeel.rewards.isolation.workers import WorkerPool, WorkerStartError
from evenkeel.rewards.isolation.workers.pool import _groups
from tests.paths import ROOT
from tests.rewards.isolation.sandbox.processes import alive, all_gone

JUDGE = "tests.rewards.isolation.workers.judges:judge"


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """One whose workers go from test to test; a test that needs new ones closes it first."""
    pool = WorkerPool(JUDGE, cpu_seconds=0.5, wall_seconds=30, memory_bytes=1 << 30, workers=2)
    yield pool
    pool.close()


def test_values_come_back_in_order_and_through_json(pool):
    results = pool.map([["double", number] for number in range(50)])
    assert [result.value for result in results] == [2 * number for number in range(50)]
    assert {result.status for result in results} == {"done"}
    assert pool.map([["text", "\ud800 é \0"]])[0].value == "\ud800 é \0"
    assert pool.map([]) == []


@pytest.mark.parametrize(
    ("item", "status", "said"),
    [
        (["spin", None], "cpu_limit", "SIGPROF"),
        (["factorial", 10**8], "cpu_limit", "SIGPROF"),
        (["raise", "no such answer"], "raised", "LookupError: no such answer"),
        (["not json", 1], "raised", "not JSON"),
        (["memory", 10**12], "memory_limit", "MemoryError"),
        (["signal", int(signal.SIGSEGV)], "died", "SIGSEGV"),
    ],
    ids=lambda part: str(part),
)
def test_how_an_item_can_end(pool, item, status, said):
    before, result, after = pool.map([["double", 1], item, ["double", 2]])
    assert (result.status, result.value) == (status, None)
    assert said in result.detail
    assert (before.value, after.value) == (2, 4)


def test_workers_are_kept_shared_and_hold_no_secret(pool, monkeypatch):
    pool.close()
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    first = pool.map([["pid", None]])[0].value
    assert pickle.loads(pickle.dumps(pool)).map([["pid", None]])[0].value == first != os.getpid()
    assert "WANDB_API_KEY" not in pool.map([["environment", None]])[0].value
    pool.close()
    assert not alive(first)
    assert pool.map([["pid", None]])[0].value != first


def test_threads_that_map_and_close_one_pool_disturb_no_outcome(pool):
    def doubled(number):
        result = pool.map([["double", number]])[0]
        if number % 3 == 0:
            pool.close()
        return result.value

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(doubled, range(12))) == [2 * number for number in range(12)]


def test_a_part_that_is_not_json_ends_its_item_and_leaves_nothing_for_the_next_batch(pool):
    parts = []
    (result,) = pool.map([["parts", [1, "odd", 3]]], on_part=parts.append)
    assert (result.status, parts) == ("raised", [1])
    assert "not JSON" in result.detail
    assert [result.value for result in pool.map([["double", 2], ["double", 3]], on_part=parts.append)] == [4, 6]
    assert parts == [1]


@pytest.mark.parametrize("when", ["at once", "while idle", "during the next item"])
def test_a_second_result_decides_no_other_item(when, tmp_path):
    pool = WorkerPool(JUDGE, cpu_seconds=5, wall_seconds=30, workers=1)
    (first,) = pool.map([["pid", None]])
    pool.map([["answer twice", None] if when == "at once" else ["answer later", str(tmp_path / "here")]])
    if when == "while idle":
        (worker,) = _groups[pool]._idle
        (tmp_path / "here").touch()
        while worker.is_silent:
            time.sleep(0.02)
    if when == "during the next item":
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(pool.map, [["wait", str(tmp_path)]])
            assert all_gone([first.value], within_seconds=10)
            (tmp_path / "go").touch()
            assert waiting.result()[0].value is None
    assert [result.value for result in pool.map([["double", 2], ["double", 3]])] == [4, 6]
    assert not alive(first.value)
    pool.close()


def test_an_item_that_a_worker_does_not_read_meets_the_wall_limit():
    text = "a" * (2 << 20)
    for users in (True, False):
        pool = WorkerPool(JUDGE, cpu_seconds=1, workers=1, users=users)
        (first,) = pool.map([["pid", None]])
        os.kill(first.value, signal.SIGSTOP)
        (result,) = pool.map([["text", text]], wall_seconds=0.5)
        assert (result.status, result.value) == (("wall_limit", None) if users else ("done", text))
        assert not alive(first.value)
        assert pool.map([["double", 2]])[0].value == 4
        pool.close()


def test_a_message_without_end_ends_its_worker(pool):
    flood, other = pool.map([["flood", None], ["double", 2]])
    assert (flood.status, other.value) == ("died", 4)
    assert "16 MiB" in flood.detail


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("tests.rewards.isolation.workers.judges:absent", "absent"),
        ("no_such_module:judge", "No module named 'no_such_module'"),
    ],
)
def test_a_worker_that_cannot_start_is_an_error_and_no_loop(target, said):
    with pytest.raises(WorkerStartError, match=said):
        WorkerPool(target, workers=2).map([1, 2, 3])


def test_a_forked_child_starts_its_own_workers(pool):
    own = pool.map([["pid", None]])[0].value
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(pool.map([["pid", None]])[0].value))
    child.start()
    childs = answers.get(timeout=60)
    child.join()
    assert childs != own
    assert all_gone([childs], within_seconds=10)
    assert pool.map([["pid", None]])[0].value == own


UNGUARDED_SCRIPT = textwrap.dedent(
    """
    import threading
    from evenkeel.rewards.isolation.workers import WorkerPool
    print("imported", flush=True)
    pool = WorkerPool("tests.rewards.isolation.workers.judges:judge", cpu_seconds=60, wall_seconds=60, workers=1)
    thread = threading.Thread(target=lambda: print(pool.map([["pid", None]])[0].value, flush=True))
    thread.start()
    thread.join()
    print(pool.map([["pid", None]])[0].value, flush=True)  # the thread that started it has ended, the worker has not
    pool.map([["spin", None]])
    """
)


def test_workers_end_with_a_parent_that_is_killed_and_never_run_its_script(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED_SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    said = [parent.stdout.readline().strip() for _ in range(3)]
    assert said[0] == "imported"
    assert said[1] == said[2]
    time.sleep(0.3)  # the item is under way
    parent.kill()
    parent.wait()
    assert all_gone([int(said[1])], within_seconds=10)
    assert parent.stdout.read() == ""
    parent.stdout.close()


@pytest.mark.parametrize("settings", [{}, {"target": "builtins:len", "argument": None, "warm_up": [], "users": True}])
def test_a_worker_whose_parent_has_ended_says_nothing(settings: dict[str, object]):
    ours, theirs = socket.socketpair()
    with theirs:
        if settings:
            ours.sendall(json.dumps({**settings, "parent": os.getpid(), "memory_bytes": 1 << 40}).encode() + b"\n")
        ours.close()
        command = [sys.executable, "-P", "-m", "evenkeel.rewards.isolation.workers.worker"]
        ended = subprocess.run([*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")
