"""Waiting for what another process does."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object],
    said: Callable[[], str] = lambda: "",
    *,
    can_still: Callable[[], bool] = lambda: True,
    seconds: float = 300,
) -> None:
    """Return when ``condition`` holds; fail with what was ``said`` where it cannot any more, or did not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert can_still(), said()
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)
