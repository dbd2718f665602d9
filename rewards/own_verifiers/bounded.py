"""A user's verifier under a limit of wall time, in a thread or in a worker process."""

import copy
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewards.own_verifiers.judging import Row, judged_rows
from rewards.own_verifiers.patience import PATIENCE_SECONDS, Waiting
from rewards.own_verifiers.process import ProcessEndedError, VerifierProcess
from rewards.own_verifiers.process_state import Change, kept
from rewards.own_verifiers.traits import Traits, name_of, traits_of
from rewards.verifier import TokenVerifier, Verdict, Verifier

logger = logging.getLogger(__name__)

_SHIPPED = "rewards.verifiers."
MOST_ENDINGS = 5
"""Ends of a verifier's process in one batch, after which no other is started."""
_said: set[tuple[str, str]] = set()


def is_own(verifier: Verifier | type[Verifier]) -> bool:
    """Whether a user wrote it, or its class: shipped verifiers keep limits of their own."""
    kind = verifier if isinstance(verifier, type) else type(verifier)
    return not kind.__module__.startswith(_SHIPPED)


def bounded(verifier: Verifier, patience_s: float = PATIENCE_SECONDS) -> Verifier:
    """``verifier`` itself where it ships, else the one that keeps it within its limits and says what it waits for."""
    if not is_own(verifier) or isinstance(verifier, OwnVerifier):
        return verifier
    return OwnVerifier(verifier, patience_s)


@dataclass(frozen=True)
class OwnVerifier(Verifier):
    """A user's verifier that never raises, never hangs and never ends the run.

    A row for which it raises, exits, crashes, returns no verdict, or which it does not reach within ``timeout_s`` of
    its batch, is unjudged; the reason says which. Where it runs: see `rewards.own_verifiers.traits`. What one batch
    waits for longer than ``patience_s``, or until its time is over, is said with its rank and row. What it changes of
    the trainer's process is put back (`rewards.own_verifiers.process_state`).
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
        self.say_changed(changes)
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
            only_steady: see `rewards.own_verifiers.process_state.kept`.
        """
        if isinstance(self.verifier, TokenVerifier):
            ids = token_ids or [None] * len(completions)
            rows: list[Row] = list(zip(completions, references, ids, strict=True))
        else:
            rows = list(zip(completions, references, strict=True))
        if not rows:
            return [], []
        judge = _in_process if self.traits.picklable else _in_thread
        waiting = Waiting(name_of(self.verifier), [(str(row[0]), row[1]) for row in rows], self.traits.timeout_s)
        with waiting.said_after(self.patience_s), kept(only_steady=only_steady) as changes:
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

    def say_changed(self, changes: Sequence[Change]) -> None:
        """Name what the verifier changed of the process, each thing once."""
        name = name_of(self.verifier)
        for change in changes:
            if (name, change.what) not in _said:
                _said.add((name, change.what))
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


def _in_thread(verifier: Verifier, rows: Sequence[Row], timeout_s: float, waiting: Waiting) -> dict[int, Verdict]:
    """A thread that is late is left behind: it cannot be ended, and its verdicts come too late to count."""
    found: dict[int, Verdict] = {}
    lock, is_over = threading.Lock(), False
    waiting.judged = lambda: len(found)

    def keep(number: int, verdict: Verdict) -> bool:
        with lock:
            if not is_over:
                found[number] = verdict
            return not is_over

    def work() -> None:
        judged_rows(verifier, rows, keep)

    thread = threading.Thread(target=work, name="own-verifier", daemon=True)
    thread.start()
    thread.join(timeout_s)
    with lock:
        is_over = True
    return found


def _in_process(verifier: Verifier, rows: Sequence[Row], timeout_s: float, waiting: Waiting) -> dict[int, Verdict]:
    """A row at which the process ends is unjudged, and the rest goes to a new one, whose start is not their time."""
    found: list[Verdict] = []
    waiting.judged = lambda: len(found)
    latest, endings = time.monotonic() + timeout_s, 0
    while len(found) < len(rows) and endings < MOST_ENDINGS and time.monotonic() < latest:
        try:
            started = time.monotonic()
            process = VerifierProcess.of(verifier)
            latest += time.monotonic() - started
            process.judge(rows[len(found) :], latest, found)
        except ProcessEndedError as error:
            endings += 1
            found.append(Verdict(None, None, f"the verifier failed: its process ended {error}", killed=True))
        except Exception as error:  # noqa: BLE001 — whatever pickling it raises, or starting the process
            failed = Verdict(None, None, f"the verifier failed: it was declared picklable, but {error}")
            found += [failed] * (len(rows) - len(found))
    if endings == MOST_ENDINGS:
        failed = Verdict(
            None, None, f"the verifier failed: its process ended {endings} times in this batch", killed=True
        )
        found += [failed] * (len(rows) - len(found))
    return dict(enumerate(found))
