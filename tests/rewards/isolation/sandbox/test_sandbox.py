"""What a run leaves, its limits, and that nothing but the program decides it; frames to and from one that runs."""

import pytest

from evenkeel.rewards.isolation.sandbox import Job, Limits, Run, Sandbox, SessionOverError


def values(run: Run) -> tuple[object, ...]:
    """All of a run that does not depend on the clock."""
    return run.status, run.exit_code, run.stdout, run.stderr, run.truncated


def test_cpu_time_is_limited_below_a_second_and_output_is_kept(sandbox: Sandbox) -> None:
    run = sandbox.run("print('so far', flush=True)\nwhile True: pass", limits=Limits(cpu_seconds=0.3))
    assert values(run) == ("killed_cpu", None, b"so far\n", b"", False)
    assert run.cpu_seconds >= 0.3
    assert run.killed


def test_memory_is_limited_and_the_program_told(sandbox: Sandbox) -> None:
    source = "x = bytearray({})"
    enough = sandbox.run(source.format(150 << 20), limits=Limits(memory_bytes=200 << 20))
    short = sandbox.run(source.format(250 << 20), limits=Limits(memory_bytes=200 << 20))
    assert enough.exit_code == 0
    assert short.exit_code == 1
    assert short.stderr.endswith(b"MemoryError\n")


@pytest.mark.parametrize(("size", "truncated"), [(999, False), (1000, True), (1001, True)])
def test_output_is_cut_at_its_limit(size: int, truncated: bool, sandbox: Sandbox) -> None:
    run = sandbox.run(f"import os; os.write(1, b'x' * {size})", limits=Limits(output_bytes=1000))
    assert run.stdout == b"x" * min(size, 1000)
    assert run.truncated is truncated


def test_threads_are_limited(sandbox: Sandbox) -> None:
    source = "import threading, time\nfor _ in range({}): threading.Thread(target=time.sleep, args=({},)).start()"
    assert sandbox.run(source.format(10, 0.3), limits=Limits(threads=20)).status == "exited"
    assert sandbox.run(source.format(40, 8), limits=Limits(threads=20)).status == "killed_threads"


def test_a_run_never_influences_the_next(sandbox: Sandbox) -> None:
    mark = """
import builtins, os, random, sys, threading, math, numpy
print(hasattr(builtins, "mark"), "MARK" in os.environ, "mark" in sys.modules, hasattr(math, "mark"))
print(sys.getrecursionlimit(), numpy.get_printoptions()["precision"], sum([1, 2]), os.getcwd())
builtins.mark = math.mark = 1
builtins.sum = lambda numbers: 0
os.environ["MARK"] = "1"
sys.modules["mark"] = sys
sys.setrecursionlimit(5000)
numpy.set_printoptions(precision=1)
os.chdir("/usr/lib")
"""
    first, second = sandbox.run(mark), sandbox.run(mark)
    assert values(first) == values(second)
    assert first.stdout.startswith(b"False False False False\n1000 8 3 "), first


def test_the_same_program_gives_the_same_output_in_every_zygote() -> None:
    source = "print({str(number) for number in range(50)}, hash('x'))"
    with Sandbox(preimported=()) as one, Sandbox(preimported=()) as another:
        assert one.run(source).stdout == another.run(source).stdout


def test_chance_is_not_inherited(sandbox: Sandbox) -> None:
    source = "import random, os; print(random.random(), os.urandom(8))"
    assert sandbox.run(source).stdout != sandbox.run(source).stdout


JOBS = [
    *(Job(f"import time; time.sleep({0.05 * (3 - number % 4)}); print({number})") for number in range(12)),
    Job("1 / 0"),
    Job("print(input())", stdin=b"x"),
    Job("while True: pass", limits=Limits(cpu_seconds=0.2)),
    Job("import os; os.abort()"),
    Job("print('y' * 2000)", limits=Limits(output_bytes=1000)),
]


def test_results_come_in_order_and_do_not_depend_on_the_slots() -> None:
    with Sandbox(slots=1, preimported=()) as one, Sandbox(slots=4, preimported=()) as four:
        serial, parallel = one.run_all(JOBS), four.run_all(JOBS)
    assert list(map(values, serial)) == list(map(values, parallel))
    assert [run.stdout for run in serial[:12]] == [f"{number}\n".encode() for number in range(12)]
    assert [run.status for run in serial[12:]] == ["exited", "exited", "killed_cpu", "killed_signal", "exited"]


ECHO = "while True: channel.send(channel.receive())"


@pytest.mark.parametrize("size", [0, 1, 100, 65_536, 5_000_000])
def test_frames_come_back_as_they_were_sent(size: int, sandbox: Sandbox) -> None:
    payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with sandbox.session(ECHO) as session:
        for _ in range(3):
            session.send(payload)
            assert session.receive() == payload


@pytest.mark.parametrize(
    "ending", ["", "1 / 0", "import os; os._exit(0)", "import os; os.close(3)", "import os; os.abort()"]
)
def test_a_program_that_ends_is_noticed(ending: str, sandbox: Sandbox) -> None:
    with sandbox.session(f"channel.receive()\n{ending}") as session:
        session.send(b"go")
        with pytest.raises(SessionOverError):
            session.receive()
        assert session.finish().status in ("exited", "killed_signal")


@pytest.mark.parametrize(
    "forged",
    [
        "os.write(3, b'\\xff\\xff\\xff\\xff')",
        "os.write(3, b'\\x00')",
        "os.write(3, b'\\x05\\x00\\x00\\x00abc')",
        "os.write(3, (1001).to_bytes(4, 'little') + bytes(1001))",
    ],
)
def test_what_is_no_frame_ends_the_session(forged: str, sandbox: Sandbox) -> None:
    session = sandbox.session(f"import os; {forged}", limits=Limits(frame_bytes=1000))
    with session, pytest.raises(SessionOverError):
        session.receive()


def test_frames_are_limited_on_both_sides(sandbox: Sandbox) -> None:
    driver = """
try:
    channel.send(bytes(1001))
except ValueError as error:
    channel.send(str(error).encode())
"""
    with sandbox.session(driver, limits=Limits(frame_bytes=1000)) as session:
        assert b"1001" in session.receive()
        with pytest.raises(ValueError, match="1001"):
            session.send(bytes(1001))
