"""The adapter from verifiers to TRL's reward functions.

TRL leaves a row out only if *every* reward function returns ``None`` for it; a row that only some of them scored would
be trained on part of its reward. So the functions of a run form a `RewardFunctionGroup`: a row that one of them cannot
score is unscored by all, unless that function has weight 0. A row belongs to at most one task; functions of other tasks
return ``None`` for it, which TRL leaves out of the sum, and so do those whose verdict does not apply.
"""

import logging
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.environments.row_environment import RowEnvironment, by_turn
from evenkeel.rewards.extraction import THOUGHT_CLOSES, THOUGHT_OPENS
from evenkeel.rewards.noise import RewardNoise, noisily_right
from evenkeel.rewards.user_verifiers import TRLFunction, bounded
from evenkeel.rewards.user_verifiers.trl_function import AT_START, REFERENCE_COLUMNS, TrainerState
from evenkeel.rewards.verifier import TokenVerifier, Verdict, Verifier, score_problem
from evenkeel.rewards.verifiers.environment import EnvironmentReward

logger = logging.getLogger(__name__)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed

LogExtra = Callable[[str, list[Any]], None]
LogMetric = Callable[[str, float], None]


class RewardFunction:
    """A verifier as TRL calls reward functions: one score per completion, ``None`` = unscored or of another task.

    A column of the rows is what each completion is scored against; a `TRLFunction` gets all. Where TRL offers the hooks
    it logs the columns ``<name>/answer`` (of a verifier that reads the reference), ``<name>/reason`` and those of the
    verdicts, and per batch, under ``verifier/<name>/``: ``accuracy`` (share of scored completions with the full
    score), ``frac_unscored``, ``frac_killed`` (cut off at a limit), ``time_p50_s`` and ``time_p99_s`` (wall time of
    one verdict). TRL itself logs ``rewards/<name>/mean``.

    With `RewardNoise` the scores are noisy if the caller passes ``row_key``: training does, evaluation does not. The
    metrics above and the column ``correct`` stay without noise; the column ``noisy_correct`` has it.

    In a conversation with tools the policy's last message is scored. A row whose environment failed is unscored. Also
    logged: ``environment/frac_failed``, ``turns`` and ``calls``, the column ``environment/failure``, and those of
    `by_turn`.

    Args:
        verifier: scores each completion. One that raises leaves its row unscored, with the exception as the reason: a
            malformed row must not end a long run. A user's own is bounded in time too (`rewards.user_verifiers`).
        name: names its metrics.
        reference: name of the column with the references.
        task: scores only the rows whose ``task`` column is this; ``None`` = all rows.
        prefilled_thought: the chat template's generation prompt ends with ``<think>``. TRL passes the completion
            without it; the verifier gets it. A plain-text prompt is inspected itself instead.
        noise: simulated verifier errors, in training only; ``None`` = no noise.
        only_measures: it has weight 0, so that rows that it cannot score are still trained on the other rewards.
    """

    trainer_state: Any = AT_START
    """TRL's, as it was passed last."""

    def __init__(
        self,
        verifier: Verifier,
        name: str,
        *,
        reference: str = "reference",
        task: str | None = None,
        prefilled_thought: bool = False,
        noise: RewardNoise | None = None,
        only_measures: bool = False,
    ) -> None:
        self.verifier = verifier
        self.reference = reference
        self.noise = noise
        self.only_measures = only_measures
        self._bounded = bounded(verifier)
        self.task = task
        self.prefilled_thought = prefilled_thought
        self.__name__ = name
        self.group = RewardFunctionGroup([self])

    def __call__(
        self,
        *,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        environments: Sequence[Any] | None = None,
        trainer_state: Any = None,
        log_extra: LogExtra | None = None,
        log_metric: LogMetric | None = None,
        **columns: Any,
    ) -> list[float | None]:
        needs_it = self._bounded.reads_reference and not isinstance(self.verifier, TRLFunction)
        if needs_it and self.reference not in columns:
            usual = next((name for name in REFERENCE_COLUMNS if name in columns), "…")
            known = ", ".join(columns) or "prompts"
            what = f"{self.__name__}: the rows have no column {self.reference!r}, only {known}."
            raise Refusal(f"{what} Write reward_functions(…, reference={usual!r}).", code="missing-column")
        self.trainer_state = trainer_state or self.trainer_state
        batch = Batch(prompts, completions, environments, columns)
        found = self.group.verdicts(batch)
        verdicts = found.of_functions[self.__name__]
        is_first = self is self.group.functions[0]  # logs what is common to all functions
        if log_extra is not None:
            said = dict.fromkeys(("answer", "reason") if self._bounded.reads_reference else ("reason",))
            said |= {column: None for each in verdicts if each for column in each.columns}
            for column in said:
                values = [each and {**vars(each), **each.columns}.get(column) for each in verdicts]
                log_extra(f"{self.__name__}/{column}", values)
            if is_first:
                log_extra("correct", found.correct)
                if found.noisy_correct is not None:
                    log_extra("noisy_correct", found.noisy_correct)
        if log_metric is not None:
            self._log([verdict for verdict in verdicts if verdict is not None], log_metric)
            for correct in found.correct if is_first else ():
                if correct is not None:
                    log_metric("verifier/accuracy", float(correct))
        if is_first and any(isinstance(each, RowEnvironment) for each in environments or ()):
            _log_environments(environments or (), completions, log_extra, log_metric)
        return [
            None if verdict is None or unscored else self._score(batch, row, verdict)
            for row, (verdict, unscored) in enumerate(zip(verdicts, found.unscored, strict=True))
        ]

    @property
    def wants_row_keys(self) -> bool:
        """True if training has to pass ``row_key``, a number for each sample of a run."""
        return self.noise is not None

    def verdicts(self, batch: "Batch") -> list[Verdict | None]:
        """This verifier's verdict on each row; ``None`` for rows of other tasks."""
        nothing, ids = [None] * len(batch.completions), batch.columns.get("completion_ids")
        tasks, golds = (batch.columns.get(name, nothing) for name in ("task", self.reference))
        mine = [row for row, task in enumerate(tasks) if self.task is None or task == self.task]
        texts = [self._text(batch, row) for row in mine]
        references = [golds[row] for row in mine]
        if isinstance(self.verifier, TRLFunction):
            texts = [batch.completions[row] for row in mine]
            state = TrainerState(**vars(self.trainer_state))
            columns = {**batch.columns, "prompt": batch.prompts, "trainer_state": [state] * len(nothing)}
            references = [{name: values[row] for name, values in columns.items()} for row in mine]
        if isinstance(self.verifier, EnvironmentReward) and batch.environments is not None:
            found = self.verifier.of([batch.environments[row] for row in mine])
        elif isinstance(self.verifier, TokenVerifier) and ids is not None:
            found = self._bounded.judge_all(texts, references, [ids[row] for row in mine])  # type: ignore[call-arg]
        else:
            found = self._bounded.judge_all(texts, references)
        verdicts: list[Verdict | None] = [None] * len(batch.completions)
        for row, verdict in zip(mine, found, strict=True):
            verdicts[row] = _recordable(verdict)
        return verdicts

    def is_right(self, verdict: Verdict) -> bool | None:
        """True if the verdict has the verifier's full score; ``None`` = unscored."""
        return None if verdict.score is None else verdict.score >= self.verifier.full_score

    def is_noisily_right(self, batch: "Batch", row: int, verdict: Verdict) -> bool | None:
        """The same with the noise that training sees."""
        right, keys = self.is_right(verdict), batch.columns.get("row_key")
        if self.noise is None or keys is None or right is None:
            return right
        return noisily_right(
            self.noise,
            right,
            label=self.__name__,
            row_key=keys[row],
            problem=[batch.prompts[row], batch.columns.get(self.reference, batch.prompts)[row]],
            completion=self._text(batch, row),
            answer=verdict.answer,
        )

    def _score(self, batch: "Batch", row: int, verdict: Verdict) -> float | None:
        noisy = self.is_noisily_right(batch, row, verdict)
        if self.noise is None or noisy == self.is_right(verdict):
            return verdict.score
        return self.verifier.full_score if noisy else self.noise.wrong_score

    def _log(self, verdicts: Sequence[Verdict], log_metric: LogMetric) -> None:
        area = f"verifier/{self.__name__}"
        for metric, value in (each for verdict in verdicts for each in verdict.metrics):
            log_metric(metric, value)
        verdicts = [verdict for verdict in verdicts if verdict.applies]
        # TRL averages over the calls of all ranks: one call per completion is exact.
        for verdict in verdicts:
            log_metric(f"{area}/frac_unscored", float(verdict.score is None))
            log_metric(f"{area}/frac_killed", float(verdict.killed))
            if (right := self.is_right(verdict)) is not None:
                log_metric(f"{area}/accuracy", float(right))
        if seconds := sorted(verdict.seconds for verdict in verdicts if verdict.seconds is not None):
            for percent in (50, 99):
                log_metric(f"{area}/time_p{percent}_s", seconds[math.ceil(percent / 100 * len(seconds)) - 1])
        if unscored := [verdict for verdict in verdicts if verdict.score is None]:
            counts = f"{len(unscored)} of {len(verdicts)}"
            logger.warning("%s left %s completions unscored; the first: %s", area, counts, unscored[0].reason)

    def _text(self, batch: "Batch", row: int) -> str:
        prompt, completion = batch.prompts[row], batch.completions[row]
        text = completion if isinstance(completion, str) else _last_turn(completion)
        is_text = isinstance(prompt, str)
        is_prefilled = prompt.rstrip().endswith(THOUGHT_OPENS) if is_text else self.prefilled_thought
        return THOUGHT_OPENS + text if is_prefilled else text


@dataclass(frozen=True)
class Batch:
    """TRL's arguments of reward functions for one batch, one row per completion.

    Attributes:
        environments: those in which the policy acted; ``None`` = no environments.
        columns: of the rows, among them ``completion_ids``, the tokens that the policy sampled, where they are known;
            ``task``, where there are tasks; ``row_key``, a number for each sample of the run, in training.
    """

    prompts: Sequence[Any]
    completions: Sequence[Any]
    environments: Sequence[Any] | None
    columns: Mapping[str, Sequence[Any]]

    def is_same(self, other: "Batch") -> bool:
        """True if both hold the very same objects, as TRL passes them to one function after another."""
        mine, theirs = ({**each.columns, **vars(each), "columns": None} for each in (self, other))
        return mine.keys() == theirs.keys() and all(mine[name] is theirs[name] for name in mine)


@dataclass(frozen=True)
class Verdicts:
    """A group's verdicts on one batch.

    Attributes:
        of_functions: name of the function → one per row; ``None`` for rows of other tasks.
        unscored: true for rows that a function with a weight could not score, or whose environment failed.
        correct: true for rows that are right by the first function of their task; ``None`` = unscored.
        noisy_correct: the same with that function's noise; ``None`` = no noise.
    """

    of_functions: Mapping[str, Sequence[Verdict | None]]
    unscored: Sequence[bool]
    correct: list[bool | None]
    noisy_correct: list[bool | None] | None


class RewardFunctionGroup:
    """The reward functions of one run. They are called one after another with the same batch, which is scored once."""

    def __init__(self, functions: Sequence[RewardFunction]) -> None:
        self.functions = functions
        self._newest: tuple[Batch, Verdicts] | None = None

    def verdicts(self, batch: Batch) -> Verdicts:
        """The verdicts of all functions on a batch, made at the first call for that batch."""
        if self._newest is None or not self._newest[0].is_same(batch):
            # Kept, so that no later object gets the id of one of its own.
            self._newest = batch, self._made(batch)
        return self._newest[1]

    def _made(self, batch: Batch) -> Verdicts:
        later = [each for each in self.functions if getattr(each.verifier, "is_async", False)]
        with ThreadPoolExecutor() as threads:  # at once, as TRL awaits them
            waiting = [(each, threads.submit(each.verdicts, batch)) for each in later]
            verdicts = {each.__name__: each.verdicts(batch) for each in self.functions if each not in later}
            verdicts |= {each.__name__: result.result() for each, result in waiting}
        failures = [getattr(each, "failure", None) for each in batch.environments or [None] * len(batch.completions)]
        unscored: list[bool] = []
        correct: list[bool | None] = []
        noisy: list[bool | None] = []
        for number, failure in enumerate(failures):
            found = [(function, verdicts[function.__name__][number]) for function in self.functions]
            given = [(function, verdict) for function, verdict in found if verdict is not None]
            row = [(function, verdict) for function, verdict in given if verdict.applies]
            paid = [verdict for function, verdict in row if not function.only_measures]
            nobody_pays = not paid and not all(function.only_measures for function, _ in given)
            is_unscored = nobody_pays or any(verdict.score is None for verdict in paid)
            unscored.append(failure is not None or not row or is_unscored)
            first, verdict = row[0] if row else (self.functions[0], Verdict(None, None, ""))
            correct.append(None if unscored[-1] else first.is_right(verdict))
            noisy.append(None if unscored[-1] else first.is_noisily_right(batch, number, verdict))
        is_noisy = "row_key" in batch.columns and any(function.noise is not None for function in self.functions)
        return Verdicts(verdicts, unscored, correct, noisy if is_noisy else None)


def reward_functions(
    verifiers: Mapping[str, Verifier],
    *,
    tasks: Mapping[str, str | None] | None = None,
    reference: str = "reference",
    prefilled_thought: bool = False,
    noise: Mapping[str, RewardNoise | None] | None = None,
    only_measure: Collection[str] = (),
) -> list[RewardFunction]:
    """The reward functions of a run, which score each batch together.

    Args:
        verifiers: name of the metrics → verifier, in the order of the rewards' weights. The first one of a row's task
            decides whether the row counts as right.
        tasks: name → the one task whose rows it scores; absent or ``None`` = all rows.
        reference: name of the column with the references, such as ``solution``.
        prefilled_thought: see `RewardFunction`.
        noise: name → its noise; absent or ``None`` = no noise.
        only_measure: names of those with weight 0.
    """
    functions = [
        RewardFunction(
            verifier,
            name,
            reference=reference,
            task=(tasks or {}).get(name),
            noise=(noise or {}).get(name),
            only_measures=name in only_measure,
            prefilled_thought=prefilled_thought,
        )
        for name, verifier in verifiers.items()
    ]
    group = RewardFunctionGroup(functions)
    for function in functions:
        function.group = group
    return functions


def _log_environments(
    environments: Sequence[Any], completions: Any, log_extra: LogExtra | None, log_metric: LogMetric | None
) -> None:
    failures = [getattr(each, "failure", None) for each in environments]
    if log_extra is not None:
        log_extra("environment/failure", failures)
        for column, values in by_turn(environments, completions).items():
            log_extra(column, values)
    for environment, failure, messages in zip(environments, failures, completions, strict=True):
        if log_metric is not None:
            log_metric("environment/frac_failed", float(failure is not None))
            log_metric("environment/turns", float(sum(message["role"] == "assistant" for message in messages)))
            log_metric("environment/calls", float(len(environment.calls)))
    if failed := [failure for failure in failures if failure is not None]:
        logger.warning("%d of %d environments failed; the first: %s", len(failed), len(failures), failed[0])


def _last_turn(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the policy's last message; a thought that the response template split off is put back in tags."""
    said = (each for each in reversed(messages) if each.get("role", "assistant") == "assistant")
    message: Mapping[str, Any] = next(said, {})
    content, thought = message.get("content") or "", message.get("reasoning_content")
    if not isinstance(content, str):  # a list of parts; only texts count
        content = "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return f"{THOUGHT_OPENS}{thought}{THOUGHT_CLOSES}{content}" if isinstance(thought, str) else content


def _recordable(verdict: Verdict) -> Verdict:
    """The verdict, unscored if float32 cannot sum its score, with texts that every table and terminal can hold."""
    answer = None if verdict.answer is None else _printable(verdict.answer)
    verdict = replace(verdict, answer=answer, reason=_printable(verdict.reason))
    if verdict.score is None or not score_problem(verdict.score):
        return verdict
    return replace(verdict, score=None, reason=f"the verifier's score is {verdict.score:g}: {verdict.reason}")


def _printable(text: str) -> str:
    """``text`` with lone surrogates and control characters, which a model may write, as escapes."""
    escaped = str(text).encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped)
