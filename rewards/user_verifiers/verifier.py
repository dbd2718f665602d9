"""A user's verifier under a limit of wall time, in a thread or in a worker process."""

import copy
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerStartError
from evenkeel.rewards.user_verifiers.judging import Row, item_of, verdicts_of, worker_pool
from evenkeel.rewards.user_verifiers.process_state import Change, kept
from evenkeel.rewards.user_verifiers.traits import Traits, name_of, traits_of
from evenkeel.rewards.verifier import TokenVerifier, Verdict, Verifier, as_verdict

logger = logging.getLogger(__name__)

_SHIPPED = "evenkeel.rewards.verifiers."
PATIENCE_SECONDS = 60.0
SHOWN_CHARACTERS = 200
"""Of a completion and of its reference, in the line about a batch that takes long."""
MOST_ENDS = 5
"""Ends of a verifier's process in one batch, after which no other is started."""
_logged: set[tuple[str, str]] = set()


def is_users(verifier: Verifier | type[Verifier]) -> bool:
    """Whether a user wrote it, or its class: shipped verifiers keep limits of their own."""
    kind = verifier if isinstance(verifier, type) else type(verifier)
    return not kind.__module__.startswith(_SHIPPED)


def bounded(verifier: Verifier, patience_s: float = PATIENCE_SECONDS) -> Verifier:
    """``verifier`` itself where it ships, else the one that keeps it within its limits and logs what it waits for."""
    if not is_users(verifier) or isinstance(verifier, UserVerifier):
        return verifier
    return UserVerifier(verifier, patience_s)


@dataclass(frozen=True)
class UserVerifier(Verifier):
    """A user's verifier that never raises, never hangs and never ends the run.

    A row for which it raises, exits, crashes, returns no verdict, or which it does not reach within ``timeout_s`` of
    its batch, is unjudged; the reason says which. Where it runs: see `rewards.user_verifiers.traits`. What one batch
    waits for longer than ``patience_s``, or until its time is over, is logged with its rank and row. What it changes of
    the trainer's process is put back (`evenkeel.rewards.user_verifiers.process_state`).
    """

    verifier: Verifier
    patience_s: float = PATIENCE_SECONDS

    @property
    def traits(self) -> Traits:
        """What the user declared."""
        return traits_of(self.verifier)

    @property
    def full_score(self) -> float:  # type: ignore[override]
        """That of the verifier."""
        return self.verifier.full_score

    @property
    def reads_reference(self) -> bool:  # type: ignore[override]
        """That of the verifier, or what was declared of its function."""
        return self.verifier.reads_reference and self.traits.reads_reference

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge one completion, as a batch of one."""
        return self.judge_all([completion], [reference])[0]

    def judge_all(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Judge a batch within ``timeout_s``."""
        verdicts, changes = self.judged_with_changes(completions, references, token_ids, only_steady=True)
        self.log_changes(changes)
        return verdicts

    def judged_with_changes(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
        *,
        only_steady: bool = False,
    ) -> tuple[list[Verdict], list[Change]]:
        """The verdicts of a batch, and what judging it changed of the process, which is put back.

        Args:
            only_steady: see `evenkeel.rewards.user_verifiers.process_state.kept`.
        """
        if isinstance(self.verifier, TokenVerifier):
            ids = token_ids or [None] * len(completions)
            rows: list[Row] = list(zip(completions, references, ids, strict=True))
        else:
            rows = list(zip(completions, references, strict=True))
        if not rows:
            return [], []
        judge = _in_worker if self.traits.picklable else _in_thread
        waiting = Waiting(name_of(self.verifier), [(str(row[0]), row[1]) for row in rows], self.traits.timeout_s)
        with waiting.logged_after(self.patience_s), kept(only_steady=only_steady) as changes:
            found = judge(self.verifier, rows, self.traits.timeout_s, waiting)
        return [self._named(found.get(row)) for row in range(len(rows))], changes

    def gold_completion(self, reference: Any) -> str | None:
        """That of the verifier. Raises ``RuntimeError`` where it exits."""
        return self._of_verifier(self.verifier.gold_completion, reference)

    def wrong_completion(self, reference: Any) -> str | None:
        """That of the verifier. Raises ``RuntimeError`` where it exits."""
        return self._of_verifier(self.verifier.wrong_completion, reference)

    def _of_verifier(self, completion: Callable[[Any], str | None], reference: Any) -> str | None:
        try:
            return completion(copy.deepcopy(reference))
        except SystemExit as stop:
            raise RuntimeError(f"{name_of(self.verifier)} called sys.exit({stop.code!r})") from stop

    def log_changes(self, changes: Sequence[Change]) -> None:
        """Name what the verifier changed of the process, each thing once."""
        name = name_of(self.verifier)
        for change in changes:
            if (name, change.what) not in _logged:
                _logged.add((name, change.what))
                logger.warning(
                    "verifier %s changed %s, which is the whole process's; it was put back. %s",
                    name,
                    change.what,
                    change.instead,
                )

    def _named(self, verdict: Verdict | None) -> Verdict:
        if verdict is None:
            seconds = self.traits.timeout_s
            verdict = Verdict(None, None, f"no verdict within timeout_s = {seconds:g} of its batch", killed=True)
        return (
            verdict
            if verdict.score is not None
            else replace(verdict, reason=f"{name_of(self.verifier)}: {verdict.reason}")
        )


class Waiting:
    """One batch under judgement. What it waits for is logged while it waits: other ranks wait too, without a line.

    Args:
        verifier: its name.
        rows: completion and reference of each.
        timeout_s: when the rows that have no verdict are given up.

    Attributes:
        judged: returns how many rows have their verdict. Rows are judged in order, so the next one is being judged.
    """

    def __init__(self, verifier: str, rows: Sequence[tuple[str, Any]], timeout_s: float) -> None:
        self.verifier = verifier
        self.rows = rows
        self.timeout_s = timeout_s
        self.is_logged = False
        self.judged: Callable[[], int] = lambda: 0

    @contextmanager
    def logged_after(self, seconds: float) -> Iterator[None]:
        """Log where the batch is after ``seconds``, or when its time is over where that is sooner."""
        started = time.monotonic()
        timer = threading.Timer(seconds, self._log, [seconds])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if not self.is_logged and time.monotonic() - started >= self.timeout_s:
            self._log(self.timeout_s)

    def _log(self, seconds: float) -> None:
        row = self.judged()
        if row >= len(self.rows):
            return
        self.is_logged = True
        completion, reference = self.rows[row]
        logger.warning(
            "[rank %s] verifier %s has judged one batch for %g s and is at row %d of %d: completion %.*r, reference "
            "%.*r. All ranks wait for it; what has no verdict after its timeout_s = %g is unjudged. Shorten it with "
            "evenkeel.rewards.own_verifiers.traits(timeout_s=…).",
            os.environ.get("RANK", "0"),
            self.verifier,
            seconds,
            row,
            len(self.rows),
            SHOWN_CHARACTERS,
            completion,
            SHOWN_CHARACTERS,
            reference,
            self.timeout_s,
        )


def _in_thread(verifier: Verifier, rows: Sequence[Row], timeout_s: float, waiting: Waiting) -> dict[int, Verdict]:
    """A thread that is late is left behind: it cannot be ended, and its verdicts come too late to count."""
    found: dict[int, Verdict] = {}
    lock, is_over = threading.Lock(), False
    waiting.judged = lambda: len(found)

    def work() -> None:
        for number, verdict in enumerate(verdicts_of(verifier, rows)):
            with lock:
                if is_over:
                    return
                found[number] = verdict

    thread = threading.Thread(target=work, name="user-verifier", daemon=True)
    thread.start()
    thread.join(timeout_s)
    with lock:
        is_over = True
    return found


def _in_worker(verifier: Verifier, rows: Sequence[Row], timeout_s: float, waiting: Waiting) -> dict[int, Verdict]:
    """A row at which the worker ends is unjudged, and the rest goes to a new one, whose start is not their time."""
    found: list[Verdict] = []
    waiting.judged = lambda: len(found)
    left, ends = timeout_s, 0

    def fail(reason: str, count: int, *, killed: bool = False) -> None:
        found.extend([Verdict(None, None, f"the verifier failed: {reason}", killed=killed)] * count)

    def on_part(verdict: Any) -> None:
        if len(found) == len(rows):
            raise ValueError("its process sent more verdicts than there are rows")
        found.append(as_verdict(Verdict(**verdict)))

    try:
        pool = worker_pool(verifier)
        while len(found) < len(rows) and ends < MOST_ENDS and left > 0:
            (result,) = pool.map([item_of(rows[len(found) :])], wall_seconds=left, on_part=on_part)
            left -= result.seconds
            if result.status == "wall_limit":
                break
            if result.status in ("done", "raised"):
                fail(result.detail or "its process sent too few verdicts", len(rows) - len(found))
            elif len(found) < len(rows):
                ends += 1
                fail(f"its process ended {result.detail}", 1, killed=True)
    except WorkerStartError as error:
        reason = str(error).strip().splitlines()[-1]
        fail(f"it was declared picklable, but no process could be started with it: {reason}", len(rows) - len(found))
    except Exception as error:  # noqa: BLE001 — whatever pickling it or a row raises
        fail(f"it was declared picklable, but {error}", len(rows) - len(found))
    if ends == MOST_ENDS:
        fail(f"its process ended {ends} times in this batch", len(rows) - len(found), killed=True)
    return dict(enumerate(found))
