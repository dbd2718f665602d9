"""Reward functions in parallel with the scoring of a rollout batch: in a thread, from when completions exist.

TRL generates, scores the completions under π_old and the reference where it needs that, and only then calls the reward
functions. Those that may run in a thread are called here as soon as the completions exist, with the arguments that TRL
is going to give them. When TRL calls, it finds a stand-in that hands over what was found: the body of TRL's
``_calculate_rewards``, its order of functions, its warnings and its gathering over the ranks stay as they are.
"""

import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from trl.trainer.utils import is_async_callable

from evenkeel.rewards.verifier import LARGEST_SCORE
from evenkeel.trainer.step.setup import Setup

_CALLBACKS = ("log_extra", "log_metric")
_NO_COLUMNS = ("prompt", "completion", "completion_ids")  # of a row; TRL hands them over by other names


class Judging:
    """Calls reward functions, some while π_old and the reference score the completions; keeps what they said.

    A function is called early, on every rank by itself, where its attribute ``may_run_in_thread`` is true. Reward
    functions made of verifiers have it. One of your own may set it if its result depends on its arguments alone, and it
    uses neither signals nor torch: in another thread `signal.alarm` raises, torch has another current device, and
    random numbers would mix with the trainer's. Everything else is called where TRL calls it: functions without the
    attribute, models, asynchronous functions; and all functions where there are environments, where a rollout function
    adds columns to the rows, and wherever TRL passes other arguments than the function was called with.

    What a function logs is logged, and what it raises is raised, when TRL calls it. An early function is called also
    where one before it in the list raises. Where the scoring itself fails, a judgement that is still
    running is waited for, so that no two ever run; on Ctrl-C it is left running and does not keep the process from
    ending.

    Attributes:
        rewards_per_function: (N, F) of all ranks, of the newest rollout batch.
        columns: what this rank's reward functions logged of it, name → one value a row.
        overlapped_seconds: seconds of judging in the newest call that ran in parallel with other work.
    """

    rewards_per_function: Tensor
    columns: dict[str, list[Any]]

    def __init__(self, setup: Setup) -> None:
        self.names, self.weights, self.ranks = setup.reward_names, setup.reward_weights, setup.ranks
        self.overlapped_seconds = 0.0
        self._rows: Sequence[Mapping[str, Any]] | None = None
        self._early: EarlyJudgement | None = None

    @contextmanager
    def overlapped(self, rows: Sequence[Mapping[str, Any]] | None) -> Iterator[None]:
        """Inside, functions may be called as soon as ``rows`` have completions; ``None`` = only where TRL calls."""
        self._rows = rows
        try:
            yield
        except Exception:
            if self._early is not None:
                self._early.wait()
            raise
        finally:
            self._rows = self._early = None

    def begin_early(
        self, functions: Sequence[Any], prompts: Sequence[Any], generated: Sequence[Any], state: Any
    ) -> None:
        """Call early what may be, with what TRL's ``_generate`` returned for ``prompts``."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        _, token_ids, _, completions, _, extra_fields, *_ = generated
        early = [function for function in functions if may_run_in_thread(function)]
        if early and not extra_fields:
            columns = {name: [row[name] for row in rows] for name in rows[0] if name not in _NO_COLUMNS}
            arguments = {"prompts": prompts, "completions": completions, "completion_ids": token_ids, **columns}
            self._early = EarlyJudgement(early, {**arguments, "trainer_state": state})

    @contextmanager
    def stand_ins(self, functions: list[Any]) -> Iterator[list[Any]]:
        """What TRL is to call in place of ``functions``: those that were called early give their result again."""
        early, self._early = self._early, None
        self.overlapped_seconds = 0.0
        if early is None:
            yield functions
            return
        try:
            yield [early.calls.get(id(function), function) for function in functions]
        except Exception:
            early.wait()
            raise
        self.overlapped_seconds = sum(max(call.seconds - call.waited, 0.0) for call in early.calls.values())

    def keep(self, rewards_per_function: Tensor, logged: Mapping[str, list[Any]]) -> None:
        """Keep the rewards (N, F) of all ranks and what was logged of this rank's rows, the newest of ``logged``."""
        rows = len(rewards_per_function) // self.ranks.count
        self.columns = {name: values[-rows:] for name, values in logged.items() if len(values) >= rows}
        self.rewards_per_function = rewards_per_function

    def refuse_unusable(self, rewards_per_function: Tensor) -> None:
        """
        Raises:
            ValueError: a reward is infinite, or too large to be summed.
        """
        weighted = rewards_per_function * self.weights.to(rewards_per_function.device)
        too_large = (rewards_per_function.abs() > LARGEST_SCORE) | (weighted.abs() > LARGEST_SCORE)
        if too_large.any():
            columns = zip(self.names, rewards_per_function.T, too_large.T, strict=True)
            named = [f"{name} ({values[bad][0].item():g})" for name, values, bad in columns if bad.any()]
            raise ValueError(
                f"The reward of {', '.join(named)} is infinite or beyond ±{LARGEST_SCORE:g}, by itself or with its "
                f"weight, for {int(too_large.any(1).sum())} of {len(rewards_per_function)} completions: their squares "
                "overflow float32, and every advantage would be 0. Return smaller numbers, None where no score is "
                "possible, or give it a smaller weight."
            )


class EarlyJudgement:
    """Reward functions called one after another in a thread of their own; `calls` are what TRL calls in their place.

    Args:
        functions: each `may_run_in_thread`.
        arguments: all that they are called with but ``log_extra`` and ``log_metric``.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], arguments: Mapping[str, Any]) -> None:
        self.calls = {id(function): EarlyCall(function, arguments) for function in functions}
        # a daemon, for the interpreter's end waits for all other threads
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._judge,), name="early-judging", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Until all calls have ended."""
        self._thread.join()

    def _judge(self) -> None:
        for call in self.calls.values():
            call.run()


class EarlyCall:
    """One call of a reward function, and the function that hands over what it found where it is called the same way.

    Attributes:
        seconds: what the call took.
        waited: how much of that it was waited for.
    """

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        self.function, self.arguments = function, arguments
        self.seconds = self.waited = 0.0
        self._logged: list[tuple[str, str, Any]] = []
        self._result: Any = None
        self._error: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        """Call the function; nothing of what it raises leaves this method."""
        started = time.perf_counter()
        try:
            self._result = self.function(**self.arguments, log_extra=self._log_extra, log_metric=self._log_metric)
        except BaseException as error:  # noqa: BLE001 — raised where TRL calls
            self._error = error
        self.seconds = time.perf_counter() - started
        self._over.set()

    def __call__(self, **arguments: Any) -> Any:
        """As the function itself: logs, returns and raises what it did."""
        started = time.perf_counter()
        self._over.wait()
        self.waited = time.perf_counter() - started
        if not same_arguments(self.arguments, arguments):
            return self.function(**arguments)
        for callback, name, value in self._logged:
            arguments[callback](name, value)
        if self._error is not None:
            raise self._error
        return self._result

    def _log_extra(self, column: str, values: Any) -> None:
        self._logged.append(("log_extra", column, list(values)))  # TRL too takes the values at once

    def _log_metric(self, name: str, value: float) -> None:
        self._logged.append(("log_metric", name, value))


def is_plain(function: Any) -> bool:
    """Whether TRL calls a reward function as a function: it is neither a model nor asynchronous."""
    return not isinstance(function, torch.nn.Module) and not is_async_callable(function)


def may_run_in_thread(function: Any) -> bool:
    """Whether a plain reward function says so."""
    return getattr(function, "may_run_in_thread", False) is True and is_plain(function)


def same_arguments(early: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether two calls pass the very same objects; of columns, which are new lists in each call, the same cells."""
    if early.keys() != given.keys() - set(_CALLBACKS) or not given.keys() >= set(_CALLBACKS):
        return False
    return all(value is given[name] or _same_cells(value, given[name]) for name, value in early.items())


def _same_cells(early: Any, given: Any) -> bool:
    if not isinstance(early, list) or not isinstance(given, list) or len(early) != len(given):
        return False
    return all(mine is theirs for mine, theirs in zip(early, given, strict=True))
