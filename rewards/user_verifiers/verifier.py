"""A user's verifier within its limit of wall time, in a process of its own if it can be sent to one."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from evenkeel.rewards.isolation.workers.user_part import UserPart
from evenkeel.rewards.user_verifiers.traits import name_of, timeout_of, written
from evenkeel.rewards.user_verifiers.trl_function import TRLFunction
from evenkeel.rewards.verifier import FAILED, TokenVerifier, Verdict, Verifier, WrappingVerifier, as_verdict

_SHIPPED = "evenkeel.rewards.verifiers."
MOST_ENDS = 5
"""Crashes of a verifier's process in one batch after which no other is started."""
Row = tuple[Any, ...]
"""Completion, reference and, of a `TokenVerifier`, token ids."""


class TimedOut(Verdict):
    """No verdict within ``timeout_s``; a class, because reasons are also the user's to write."""


def is_users(verifier: Verifier | type[Verifier]) -> bool:
    """True if a user wrote it or its class; shipped verifiers keep limits of their own."""
    kind = verifier if isinstance(verifier, type) else type(verifier)
    return not kind.__module__.startswith(_SHIPPED)


def bounded(verifier: Verifier) -> Verifier:
    """A shipped ``verifier`` itself; a user's in a `UserVerifier`, which keeps it within its limits."""
    return UserVerifier(verifier) if is_users(verifier) and not isinstance(verifier, UserVerifier) else verifier


def users_part(verifier: Verifier) -> "UserVerifier | None":
    """The user's verifier, bounded: ``verifier`` or the one that it pays by length; ``None`` if both are shipped."""
    found = (bounded(verifier), getattr(verifier, "verifier", None))
    return next((each for each in found if isinstance(each, UserVerifier)), None)


@dataclass(frozen=True)
class UserVerifier(WrappingVerifier):
    """A user's verifier that never raises and, in a process of its own, never hangs and never ends the run.

    A row is unscored, with the reason, if the verifier raises, exits, crashes, returns no verdict, or does not reach
    the row within ``timeout_s`` of its batch. It runs in `rewards.isolation.workers.user_part`, except that gold and
    wrong completions are written in this process.
    """

    verifier: Verifier

    @property
    def full_score(self) -> float:  # type: ignore[override]
        """The inner verifier's."""
        return self.verifier.full_score

    @property
    def reads_reference(self) -> bool:  # type: ignore[override]
        """The inner verifier's, unless its function declares false."""
        return self.verifier.reads_reference and getattr(written(self.verifier), "reads_reference", True)

    @cached_property
    def _part(self) -> UserPart:
        return UserPart(partial(_answers, self.verifier))

    def __getstate__(self) -> dict[str, Any]:
        return {"verifier": self.verifier}

    def judge_all(
        self,
        completions: Sequence[str],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Score a batch within ``timeout_s``. Rows after one that ends the process are scored by a new process."""
        if isinstance(self.verifier, TRLFunction) and references:
            self.verifier.check_columns(references[0])
        columns: list[Sequence[Any]] = [completions, references]
        if isinstance(self.verifier, TokenVerifier):
            columns.append(token_ids or [None] * len(completions))
        rows: list[Row] = list(zip(*columns, strict=True))
        found: list[Verdict] = []
        left, ends = (limit := timeout_of(self.verifier)), 0

        def on_part(part: Any) -> None:
            found.append(as_verdict(Verdict(**part)))

        def leave(verdict: Verdict) -> None:
            found.extend([verdict] * (len(rows) - len(found)))

        while len(found) < len(rows):
            try:
                result = self._part.call(rows[len(found) :], left, on_part)
            except Exception as error:  # noqa: BLE001 — a row that cannot be sent, or a result that is not a verdict
                leave(Verdict(None, None, f"{FAILED}: {error}"))
                break
            left -= result.seconds
            if len(found) >= len(rows):
                break
            if result.status == "wall_limit" or left <= 0:
                completion, reference, *_ = rows[len(found)]
                why = f"no verdict within timeout_s = {limit:g} of its batch"
                found.append(TimedOut(None, None, f"{why}: {completion!r:.200}, reference {reference!r:.200}", True))
                leave(TimedOut(None, None, why, killed=True))
            elif result.killed:
                ends += 1
                why = f"{FAILED}: its process ended {result.detail}"
                found.append(Verdict(None, None, why, killed=True))
                if ends == MOST_ENDS or isinstance(self.verifier, TRLFunction):
                    why = f"{FAILED}: its process ended {ends} times in this batch"
                    leave(Verdict(None, None, why, killed=True))
            else:
                why = f"{FAILED}: {result.detail or 'it returned too few verdicts'}"
                leave(Verdict(None, None, why))
        return [self._named(verdict) for verdict in found[: len(rows)]]

    def _named(self, verdict: Verdict) -> Verdict:
        if verdict.score is not None:
            return verdict
        return replace(verdict, reason=f"{name_of(self.verifier)}: {verdict.reason}")


def _answers(verifier: Verifier, rows: Sequence[Row]) -> Iterator[Any]:
    """The fields of each row's verdict, as soon as it is known.

    Rows are scored on copies, so that the verifier cannot change the run's references and token ids. They are scored
    together only if the verifier has a ``judge_all`` of its own.
    """
    one_by_one = type(verifier).judge_all in (Verifier.judge_all, TokenVerifier.judge_all)
    for batch in [[row] for row in rows] if one_by_one else [rows]:
        yield from map(vars, _verdicts(verifier, batch))


def _verdicts(verifier: Verifier, rows: Sequence[Row]) -> list[Verdict]:
    try:
        copies = [tuple(map(copy.deepcopy, row)) for row in rows]
        verdicts = verifier.judge_all(*(list(column) for column in zip(*copies, strict=True)))
        if len(verdicts) != len(rows):
            raise ValueError(f"judge_all returned {len(verdicts)} verdicts for {len(rows)} completions")
        return [as_verdict(verdict) for verdict in verdicts]
    except (Exception, SystemExit) as error:  # noqa: BLE001 — a row must not end a run
        return [Verdict(None, None, f"{FAILED}: {type(error).__name__}: {error}")] * len(rows)
