"""Frames of bytes over a stream socket: four bytes of length, then the payload."""

import os
import struct

_LENGTH = struct.Struct("<I")


class Channel:
    """The program's end. Plain reads and writes of one descriptor: the filter permits no more.

    ``receive`` raises ``EOFError`` when the other side is done; ``send`` raises ``ValueError`` for a frame above
    ``most`` bytes, ``BrokenPipeError`` when nobody listens.
    """

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor = descriptor
        self._most = most

    def send(self, payload: bytes) -> None:
        """Write one frame, waiting until the other side has read what came before."""
        if len(payload) > self._most:
            raise ValueError(f"a frame of {len(payload)} bytes; this channel carries at most {self._most}")
        frame = memoryview(_LENGTH.pack(len(payload)) + payload)
        while frame:
            frame = frame[os.write(self._descriptor, frame) :]

    def receive(self) -> bytes:
        """Wait for one frame."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count:
            chunk = os.read(self._descriptor, min(count, 1 << 20))
            if not chunk:
                raise EOFError("the other side of the channel is closed")
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)
