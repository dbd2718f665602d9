"""Phases of training: the time that each takes of an optimizer step, and the one in which memory ran out.

``timing/<phase>_s`` are the seconds of each optimizer step on the logging process; a log line holds the mean over its
steps. They add up to the time of training steps and logging, without evaluations, checkpoints and the loading of rows.
docs/metrics.md says what each holds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMED = ("generate", "sync", "old_logps", "reference", "verify_wait", "prepare", "update", "log")
"""Phases that divide the time of a step."""
_STARTS_CLOCK = ("update", "log")
_ALWAYS = (*_STARTS_CLOCK, "evaluate")
"""Phases that open at any time; the others only while the clock runs."""
DESCRIPTIONS = {
    "generate": "generation",
    "sync": "generation",
    "old_logps": "scoring of the rollout batch",
    "reference": "scoring of the rollout batch",
    "prepare": "scoring of the rollout batch",
    "verify_wait": "reward functions",
    "update": "forward and backward pass",
    "optimizer": "optimizer step",
    "evaluate": "evaluation",
}
"""Phase → its name in messages."""
_BEFORE = "preparation"


class Phases:
    """The stack of open phases, and the seconds of each since the last `end_step`. Time in a nested phase counts for
    the inner one alone. The clock runs inside ``update`` and ``log``."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(TIMED, 0.0)
        self._open: list[tuple[str, float]] = []  # name, and since when it is the innermost
        self._microbatch_ended: float | None = None
        self._failed: str | None = None
        self._after_backward = False

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Inside, phase ``name`` is open."""
        if name not in _ALWAYS and not self.is_timed:
            yield
            return
        self._count()
        if not self._open:
            self._failed = None
        self._open.append((name, time.perf_counter()))
        self._after_backward = False
        try:
            yield
        except BaseException:
            self._failed = self._failed or DESCRIPTIONS.get(name, _BEFORE)  # the innermost
            raise
        finally:
            self._count()
            self._open.pop()

    @property
    def is_timed(self) -> bool:
        """Whether the clock runs."""
        return any(name in _STARTS_CLOCK for name, _ in self._open)

    @property
    def now(self) -> str | None:
        """The innermost open phase."""
        return self._open[-1][0] if self._open else None

    @property
    def doing(self) -> str:
        """For messages: the phase in which the current exception was raised, or the one that is open now."""
        if self._failed is not None:
            return self._failed
        if self._open:
            return DESCRIPTIONS.get(self._open[-1][0], _BEFORE)
        return DESCRIPTIONS["optimizer"] if self._after_backward else _BEFORE

    def begin_training(self) -> None:
        """Drop the times of an optimizer step that was not finished."""
        self.end_step()
        self._microbatch_ended = None

    def microbatch_starts(self) -> None:
        """Count the time since `microbatch_ended` as ``update``: a wait for the newest loss, or the optimizer step."""
        if self._microbatch_ended is not None:
            self._seconds["update"] += time.perf_counter() - self._microbatch_ended
            self._microbatch_ended = None

    def microbatch_ended(self) -> None:
        """Count the time from here to the next micro-batch, or to the end of the step, as ``update``."""
        self._microbatch_ended = time.perf_counter()

    def gradient_is_complete(self) -> None:
        """Note that the optimizer step comes next."""
        self._after_backward = True

    def end_step(self) -> dict[str, float]:
        """The metrics of the optimizer step that has just been made; resets the times."""
        self.microbatch_starts()
        seconds, self._seconds = self._seconds, dict.fromkeys(TIMED, 0.0)
        return {f"timing/{name}_s": value for name, value in seconds.items()}

    def _count(self) -> None:
        """Count the time until now for the innermost phase, and restart all open phases from now."""
        if not self._open:
            return
        (name, since), now = self._open[-1], time.perf_counter()
        if name in self._seconds and self.is_timed:
            self._seconds[name] += now - since
        self._open = [(each, now) for each, _ in self._open]
