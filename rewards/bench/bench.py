"""Runs the trials and says what is wrong with the verdicts."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenkeel.rewards.bench.trials import KINDS, Kind, Row, Trial, trials
from evenkeel.rewards.user_verifiers import bounded
from evenkeel.rewards.verifier import Verdict, Verifier

BATCH = 64  # completions judged together, as in a rollout


@dataclass(frozen=True)
class Finding:
    """Something about one verdict that must not be; ``problem`` says what."""

    problem: str
    trial: Trial
    verdict: Verdict


@dataclass(frozen=True)
class Measured:
    """The verdicts of one kind of trial. ``seconds`` are those of each judgement, ``wall`` is that of all together."""

    count: int
    right: int
    partly: int
    unjudged: int
    killed: int
    seconds: list[float] = field(repr=False)
    wall: float

    def percentile(self, percent: float) -> float:
        """Of the seconds of a judgement; 0 where none was measured."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))] if ordered else 0.0


@dataclass(frozen=True)
class Bench:
    """What came of trying one verifier on one set of rows.

    Attributes:
        measured: by kind of trial; kinds without a trial are left out.
        without_gold: rows whose reference holds no answer to write down.
        alike: other rows' golds that were paid, while this row's gold is paid there too: equal answers.
        leaks: what must not be, see `bench`.
    """

    name: str
    rows: int
    measured: Mapping[Kind, Measured]
    without_gold: int
    alike: int
    leaks: list[Finding]

    @property
    def error_rates(self) -> tuple[float, float]:
        """(false positives, false negatives): shares of the judged trials that are wrong and were paid in full, and of
        the judged golds that were refused; NaN without such trials.

        What ``backward_corrected`` and ``forward_corrected`` take. They are rates on these trials: a policy's wrong
        answers are others, and are seldom so well chosen.
        """
        golds = [each for kind, each in self.measured.items() if kind == "gold"]
        others = [each for kind, each in self.measured.items() if kind != "gold"]
        refused = sum(each.count - each.unjudged - each.right for each in golds)
        paid = sum(each.right for each in others) - self.alike
        return _share(paid, others, self.alike), _share(refused, golds, 0)

    @property
    def seconds_per_thousand(self) -> float:
        """Wall time for a thousand ordinary completions, right and wrong, in batches on this machine."""
        ordinary = [self.measured[kind] for kind in ("gold", "other row") if kind in self.measured]
        count = sum(each.count for each in ordinary)
        return 1000 * sum(each.wall for each in ordinary) / count if count else 0.0


def bench(
    verifier: Verifier,
    rows: Sequence[Row],
    *,
    name: str,
    adversarial: Mapping[str, str],
    max_seconds: float = 60.0,
) -> Bench:
    """Try ``verifier`` on ``rows`` and on completions made to break it; a user's own within its limits.

    A leak is a gold that does not earn the full score; a reference that cannot be used, such as an empty one; any other
    completion that earns the full score, or, if it answers no row, anything above 0; one that is unjudged though its
    row's reference can be used; a judgement of more than ``max_seconds``, or a row whose gold cannot be written down
    for an exception. Verifiers that read no reference may pay adversarial completions, and penalties, whose full score
    is 0, pay nothing.
    """
    verifier = bounded(verifier)
    tried = list(trials(verifier, rows, adversarial))
    _judged(verifier, rows, tried[:1])  # starts worker processes, which is not a judgement's time
    verdicts: dict[Trial, Verdict] = {}
    measured: dict[Kind, Measured] = {}
    for kind in KINDS:
        of_kind = [trial for trial in tried if trial.kind == kind]
        if of_kind:
            started = time.perf_counter()
            found = _judged(verifier, rows, of_kind)
            measured[kind] = _measured(verifier, found, time.perf_counter() - started)
            verdicts |= zip(of_kind, found, strict=True)
    paid_elsewhere = {(trial.row, trial.answers) for trial in verdicts if _is_right(verifier, verdicts[trial])}
    asked_back = [
        Trial("other row", "asked back", trial.answers, verifier.gold_completion(rows[trial.row].reference) or "")
        for trial in verdicts
        if trial.kind == "other row" and trial.answers is not None and (trial.row, trial.answers) in paid_elsewhere
    ]
    alike = {
        (asked.completion, asked.row)
        for asked, verdict in zip(asked_back, _judged(verifier, rows, asked_back), strict=True)
        if _is_right(verifier, verdict)
    }
    usable = {trial.row for trial, verdict in verdicts.items() if trial.name == "nothing" and verdict.score is not None}
    leaks, same = [], 0
    for trial, verdict in verdicts.items():
        gold = verifier.gold_completion(rows[trial.row].reference) or "" if trial.kind == "other row" else ""
        if trial.kind == "other row" and (gold, trial.answers) in alike:
            same += 1
        elif problem := _problem(verifier, trial, verdict, trial.row in usable, max_seconds):
            leaks.append(Finding(problem, trial, verdict))
    golds = measured["gold"].count if "gold" in measured else 0
    return Bench(name, len(rows), measured, len(rows) - golds, same, leaks)


def _problem(verifier: Verifier, trial: Trial, verdict: Verdict, usable: bool, max_seconds: float) -> str:
    """What must not be about this verdict; empty where all is well."""
    right = _is_right(verifier, verdict)
    if verdict.seconds is not None and verdict.seconds > max_seconds:
        return f"took {verdict.seconds:.1f} s, more than {max_seconds:g}"
    if verdict.score is None and trial.name == "nothing" and verifier.reads_reference:
        return "the reference cannot be used"
    if verdict.score is None:
        return "unscored, though the reference can be used" if usable or trial.kind == "gold" else ""
    if trial.kind == "gold":
        return "" if right else "the gold answer is refused"
    if trial.kind == "adversarial" and not verifier.reads_reference:
        return ""
    if right and verifier.full_score > 0:
        return "paid in full"
    return "paid in part" if verdict.score > 0 and trial.answers is None else ""


def _share(number: int, measured: Sequence[Measured], without: int) -> float:
    """``number`` of all judged, less ``without``."""
    judged = sum(each.count - each.unjudged for each in measured) - without
    return number / judged if judged else math.nan


def _is_right(verifier: Verifier, verdict: Verdict) -> bool:
    return verdict.score is not None and verdict.score >= verifier.full_score


def _judged(verifier: Verifier, rows: Sequence[Row], tried: Sequence[Trial]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for start in range(0, len(tried), BATCH):
        batch = tried[start : start + BATCH]
        completions = [trial.completion for trial in batch]
        verdicts += verifier.judge_all(completions, [rows[trial.row].reference for trial in batch])
    return verdicts


def _measured(verifier: Verifier, verdicts: Sequence[Verdict], wall: float) -> Measured:
    right = sum(_is_right(verifier, verdict) for verdict in verdicts)
    above = sum(verdict.score is not None and verdict.score > 0 for verdict in verdicts)
    return Measured(
        count=len(verdicts),
        right=right,
        partly=max(0, above - right),
        unjudged=sum(verdict.score is None for verdict in verdicts),
        killed=sum(verdict.killed for verdict in verdicts),
        seconds=[verdict.seconds for verdict in verdicts if verdict.seconds is not None],
        wall=wall,
    )
