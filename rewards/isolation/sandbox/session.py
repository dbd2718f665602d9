"""A program that is talked to while it runs."""

import struct
import time

from rewards.isolation.sandbox.limits import Run
from rewards.isolation.sandbox.program_process import BACKSTOP_SECONDS, ProgramProcess

_LENGTH = struct.Struct("<I")


class SessionOverError(EOFError):
    """The program has ended, or closed its channel, or sent what is no frame: nothing more will come."""


class Session:
    """The trainer's side of a program with a channel, as a context manager: leaving it kills the program.

    In the program the name ``channel`` has ``receive() -> bytes``, which raises ``EOFError`` when this side is done,
    and ``send(bytes)``. Whatever runs there can write to the channel: it carries values, never verdicts.
    """

    def __init__(self, process: ProgramProcess) -> None:
        assert process.channel is not None
        self._process = process
        self._channel = process.channel
        self._run: Run | None = None

    def send(self, payload: bytes) -> None:
        """Send one frame. Raises ``SessionOverError`` where nobody reads it any more."""
        if len(payload) > self._process.limits.frame_bytes:
            most = self._process.limits.frame_bytes
            raise ValueError(f"a frame of {len(payload)} bytes; Limits.frame_bytes allows {most}")
        try:
            self._channel.settimeout(self._process.limits.longest_seconds + BACKSTOP_SECONDS)
            self._channel.sendall(_LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            raise SessionOverError("the program no longer reads its channel") from error

    def receive(self, timeout: float | None = None) -> bytes:
        """The next frame.

        Args:
            timeout: seconds to wait for all of it; ``None`` = as long as its limits let the program live.

        Raises:
            TimeoutError: it did not come in time; the channel is of no use after that.
            SessionOverError: it will never come.
        """
        seconds = self._process.limits.longest_seconds + BACKSTOP_SECONDS if timeout is None else timeout
        deadline = time.monotonic() + seconds
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > self._process.limits.frame_bytes:
            raise SessionOverError(f"the program announces a frame of {length} bytes, above Limits.frame_bytes")
        return self._exactly(length, deadline)

    def finish(self, *, kill: bool = True) -> Run:
        """End the session and tell what the program left.

        Args:
            kill: end the program now; else it sees the end of its channel and may go on to its limits.
        """
        if self._run is None:
            if kill:
                self._process.give_up()
            self._channel.close()
            self._run = self._process.result() or Run("failed_to_start", problem="the sandbox died under the program")
        return self._run

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *error: object) -> None:
        if self._run is None:
            self._process.close()

    def _exactly(self, count: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while count:
            self._channel.settimeout(max(0.0, deadline - time.monotonic()) or 1e-9)
            try:
                part = self._channel.recv(min(count, 1 << 20))
            except TimeoutError:
                raise TimeoutError("the program sent no whole frame in time") from None
            except OSError:
                part = b""
            if not part:
                raise SessionOverError("the program has ended or closed its channel")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
