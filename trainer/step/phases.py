"""What the trainer is doing: where the time of an optimizer step goes, and what it was doing when memory ran out.

Times are the host's; nothing waits for a device in order to be timed. ``timing/<phase>_s`` are the seconds of each
optimizer step on the logging process; a log line holds the mean over its steps.

- ``generate``: completions, with their decoding into text; also those of revisions;
- ``sync``: handing the weights to vLLM; 0 without it;
- ``old_logps``, ``reference``: scoring the completions under π_old and under the reference, where that is done;
- ``verify_wait``: what judging adds to the step: TRL's ``_calculate_rewards``, with the gathering of rewards, and so
  the wait for the slowest rank;
- ``prepare``: the rest of making a rollout batch: padding, advantages, their diagnostics, TRL's cut;
- ``update``: forwards, backwards, planned micro-batches, clipping, the optimizer;
- ``log``: logging, of the step before: the time of a log is known when it has been written.

They add up to the time of the training steps and logs; evaluations, checkpoints and the loading of rows are in none.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMED = ("generate", "sync", "old_logps", "reference", "verify_wait", "prepare", "update", "log")
"""What a step's time is divided into."""
_STARTS_CLOCK = ("update", "log")
_ALWAYS = (*_STARTS_CLOCK, "evaluate")
"""Phases that are noted wherever they begin; the others only while the clock runs."""
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
"""Phase → what messages call it."""
_BEFORE = "preparation"


class Phases:
    """The phases that are open, one inside the other, and the seconds of each since they were last read.

    The time of a phase inside another one counts for the inner one alone. Time counts inside ``update`` and ``log``.
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(TIMED, 0.0)
        self._open: list[tuple[str, float]] = []  # the phases that are open, and when each last came to the top
        self._microbatch_ended: float | None = None
        self._failed: str | None = None
        self._after_backward = False

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """What is done inside is ``name``."""
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
        """Whether the time that goes by now is counted."""
        return any(name in _STARTS_CLOCK for name, _ in self._open)

    @property
    def now(self) -> str | None:
        """The innermost open phase."""
        return self._open[-1][0] if self._open else None

    @property
    def doing(self) -> str:
        """For messages: what was being done when the current exception was raised, or is being done now."""
        if self._failed is not None:
            return self._failed
        if self._open:
            return DESCRIPTIONS.get(self._open[-1][0], _BEFORE)
        return DESCRIPTIONS["optimizer"] if self._after_backward else _BEFORE

    def begin_training(self) -> None:
        """Forget the times of an optimizer step that was not finished."""
        self.end_step()
        self._microbatch_ended = None

    def microbatch_starts(self) -> None:
        """Between micro-batches the host may wait for the newest loss; after the step's last comes the optimizer."""
        if self._microbatch_ended is not None:
            self._seconds["update"] += time.perf_counter() - self._microbatch_ended
            self._microbatch_ended = None

    def microbatch_ended(self) -> None:
        """From here until the next micro-batch, or the end of the step, is ``update`` too."""
        self._microbatch_ended = time.perf_counter()

    def gradient_is_complete(self) -> None:
        """What comes next is the optimizer's step."""
        self._after_backward = True

    def end_step(self) -> dict[str, float]:
        """Metrics of the optimizer step that has just been made, and start again."""
        self.microbatch_starts()
        seconds, self._seconds = self._seconds, dict.fromkeys(TIMED, 0.0)
        return {f"timing/{name}_s": value for name, value in seconds.items()}

    def _count(self) -> None:
        """Give the time until now to the phase on top, and start the one below it from here."""
        if not self._open:
            return
        (name, since), now = self._open[-1], time.perf_counter()
        if name in self._seconds and self.is_timed:
            self._seconds[name] += now - since
        self._open = [(each, now) for each, _ in self._open]
