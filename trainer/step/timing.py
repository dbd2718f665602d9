"""Where the time of an optimizer step goes, by the host's clock.

Nothing waits for a device in order to be timed. On a GPU the work of a phase is queued and goes on beside the host, so
that its time shows in the phase in which the host next waits for a result: generation, scoring and updates wait within
themselves (TRL reads their results), so that little moves from one to another.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.step.on_policy_trainer import OnPolicyTrainer

PHASES = ("generate", "sync", "old_logps", "reference", "verify_wait", "prepare", "update", "log")
"""What a step's time is divided into. ``verify`` is none of them: it runs beside others."""


class PhaseClock:
    """Seconds of each phase since they were last read. A phase inside another one is no part of that."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._open: list[tuple[str, float]] = []  # the phases under way, and when each last came to the top

    @property
    def is_running(self) -> bool:
        """Whether a phase is under way."""
        return bool(self._open)

    @property
    def now(self) -> str | None:
        """The phase under way, the innermost."""
        return self._open[-1][0] if self._open else None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done inside as ``name``."""
        self._count()
        self._open.append((name, time.perf_counter()))
        try:
            yield
        finally:
            self._count()
            self._open.pop()

    def read(self) -> dict[str, float]:
        """The seconds, and start again."""
        seconds, self._seconds = self._seconds, dict.fromkeys(PHASES, 0.0)
        return seconds

    def add(self, name: str, seconds: float) -> None:
        """Count seconds that another clock has measured."""
        self._seconds[name] += seconds

    def _count(self) -> None:
        """Give the time until now to the phase on top, and let the one below it go on from here."""
        if not self._open:
            return
        (name, since), now = self._open[-1], time.perf_counter()
        self._seconds[name] += now - since
        self._open = [(each, now) for each, _ in self._open]


class TimedTrainer(OnPolicyTrainer):
    """`OnPolicyTrainer` that logs ``timing/<phase>_s``: seconds of each optimizer step on the logging process.

    A log line holds the mean over its steps, so that times the steps it is the time that went by. A step that trains on
    an earlier rollout batch generates for 0 s.

    - ``generate``: completions, with their decoding into text; also those of revisions;
    - ``sync``: handing the weights to vLLM; 0 without it;
    - ``old_logps``, ``reference``: scoring the completions under π_old and under the reference, where that is done;
    - ``verify_wait``: what judging adds to the step: TRL's ``_calculate_rewards``, with the gathering of rewards, and
      so the wait for the slowest rank;
    - ``verify``: what that were with nothing run beside it (see `EarlyJudgingTrainer`), so never less;
    - ``prepare``: the rest of making a rollout batch: padding, advantages, their diagnostics, TRL's cut;
    - ``update``: forwards, backwards, planned micro-batches, clipping, the optimizer;
    - ``log``: logging, of the step before: the time of a log is known when it has been written.

    ``verify`` left out they add up to the time of the training steps and logs; evaluations, checkpoints and the loading
    of rows are in none.
    """

    clock = PhaseClock()
    """Each trainer has its own; this one, which never runs, is that of an object made without ``__init__``, as some of
    TRL's tests make them."""
    _num_scored = 0

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        self.clock = PhaseClock()
        self._overlapped = 0.0
        self._ended: float | None = None  # when the newest micro-batch of the step was trained
        self._num_scored = 0
        super().__init__(*positional, **keywords)
        self.add_callback(_EndOfStep(self._finish_step))
        if self.use_vllm:
            engine: Any = self.vllm_generation
            engine.sync_weights = self._timed("sync", engine.sync_weights)

    def training_step(self, *positional: Any, **keywords: Any) -> torch.Tensor:
        self._count_since_microbatch()
        with self.clock.phase("update"):
            loss: torch.Tensor = super().training_step(*positional, **keywords)
        self._ended = time.perf_counter()
        return loss

    def _prepare_inputs(self, *positional: Any, **keywords: Any) -> dict[str, Any]:
        self._num_scored = 0
        with self._phase("prepare"):
            inputs: dict[str, Any] = super()._prepare_inputs(*positional, **keywords)
        return inputs

    def _generate(self, *positional: Any, **keywords: Any) -> Any:
        with self._phase("generate"):
            return super()._generate(*positional, **keywords)

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> torch.Tensor:
        with self._phase("verify_wait"):
            rewards: torch.Tensor = super()._calculate_rewards(*positional, **keywords)
        self._overlapped += self.overlapped_seconds
        return rewards

    def _get_per_token_logps_and_entropies(self, model: Any, *positional: Any, **keywords: Any) -> Any:
        if torch.is_grad_enabled() or not self.clock.is_running:
            return super()._get_per_token_logps_and_entropies(model, *positional, **keywords)
        adapter_is_off = self.beta != 0.0 and self.ref_model is None and self._num_scored == self._asks_for_old_logps
        self._num_scored += 1
        with self._phase("reference" if model is self.ref_model or adapter_is_off else "old_logps"):
            return super()._get_per_token_logps_and_entropies(model, *positional, **keywords)

    def _phase(self, name: str) -> Any:
        """The phase inside a training step; elsewhere, in evaluations, nothing is timed."""
        return self.clock.phase(name) if self.clock.is_running else _untimed()

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*positional: Any, **keywords: Any) -> Any:
            with self._phase(name):
                return function(*positional, **keywords)

        return timed

    def _finish_step(self) -> None:
        """Log the step that has just been made."""
        self._count_since_microbatch()
        seconds = self.clock.read()
        seconds["verify"] = seconds["verify_wait"] + self._overlapped
        self._overlapped = 0.0
        for name, value in seconds.items():
            self._metrics["train"][f"timing/{name}_s"].append(value)

    def _count_since_microbatch(self) -> None:
        """Between micro-batches the host may wait for the newest loss; behind the step's last comes the optimizer."""
        if self._ended is not None:
            self.clock.add("update", time.perf_counter() - self._ended)
            self._ended = None


class _EndOfStep(TrainerCallback):
    def __init__(self, finish: Callable[[], None]) -> None:
        self.finish = finish

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.finish()


@contextmanager
def _untimed() -> Iterator[None]:
    yield
