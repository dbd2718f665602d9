"""The channel to a program that runs: frames of bytes in both directions, whatever the program does to it."""

import pytest

from evenkeel.rewards.isolation.sandbox import Limits, Sandbox, SessionOverError

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
