"""What the sandbox gives a session's program to talk through."""

from typing import Protocol


class Channel(Protocol):
    """Frames of bytes, both ways; ``receive`` raises ``EOFError`` when the other side is done."""

    def receive(self) -> bytes:
        """Wait for a frame."""

    def send(self, payload: bytes) -> None:
        """Send a frame."""
