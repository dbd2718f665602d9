"""Records of completions: prompt, text, and the results of the reward functions."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from evenkeel.rewards.verifier import Verifier
from evenkeel.trainer.evaluation.decoding import Draw

RewardCallable = Callable[..., Sequence[float | None]]


@dataclass(frozen=True)
class Answered:
    """Completions of held-out rows.

    Attributes:
        prompts: including additions of an environment.
        completion_ids: all tokens of each, including results of tools.
        num_tokens: of each, without results of tools.
        columns: arguments of reward functions in addition to the columns of the rows.
    """

    prompts: Sequence[Any]
    completions: Sequence[Any]
    completion_ids: Sequence[Sequence[int]]
    num_tokens: Sequence[int]
    columns: Mapping[str, Sequence[Any]]

    def first(self, count: int) -> "Answered":
        """The first ``count`` completions."""
        fields: Any = (self.prompts, self.completions, self.completion_ids, self.num_tokens)
        prompts, completions, ids, numbers = (values[:count] for values in fields)
        columns = {name: values[:count] for name, values in self.columns.items()}
        return Answered(prompts, completions, ids, numbers, columns)


def logged_columns(logged: Mapping[str, Sequence[Any]], rows: int) -> dict[str, list[Any]]:
    """The columns of ``log_extra`` that hold a value for each of the newest ``rows``; numbers of NumPy and torch as
    Python's."""
    return {
        name: [value.item() if getattr(value, "ndim", None) == 0 else value for value in values[-rows:]]
        for name, values in logged.items()
        if len(values) >= rows
    }


@dataclass
class Tally:
    """Records and metrics of one held-out set in one process.

    Attributes:
        records: one mapping per completion, as in `evenkeel.trainer.evaluation.result.EvaluationResult`.
        logged: values that the reward functions passed to ``log_metric``, by name.
        seconds: wall time of generation.
        logs_metrics: keep these values; true during the first decoding alone.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    logged: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0
    logs_metrics: bool = True

    def judge(
        self,
        draws: Sequence[Draw],
        rows: Sequence[Mapping[str, Any]],
        answered: Answered,
        end_tokens: Set[int],
        functions: Mapping[str, RewardCallable],
        weights: Sequence[float],
        *,
        greedy: bool,
        trainer_state: Any = None,
    ) -> None:
        """Score and record one batch: its draws, the dataset's row of each, and the completions; padding is skipped.

        A completion is truncated if it has tokens and the last is not in ``end_tokens``. ``functions`` are called as
        TRL calls reward functions, by name in the order of ``weights``; they log the columns ``correct``,
        ``<name>/answer`` and ``<name>/reason``.
        """
        count = sum(not draw.padding for draw in draws)  # padding comes last
        if not count:
            return
        draws, rows, answered = draws[:count], rows[:count], answered.first(count)
        columns = {name: [row[name] for row in rows] for name in rows[0] if name not in ("prompt", "completion")}
        logged: dict[str, list[Any]] = defaultdict(list)
        scores = {
            name: function(
                prompts=answered.prompts,
                completions=answered.completions,
                completion_ids=answered.completion_ids,
                log_extra=lambda column, values: logged[column].extend(values),
                log_metric=self._log_metric,
                trainer_state=trainer_state,
                **columns,
                **answered.columns,
            )
            for name, function in functions.items()
        }
        extra = logged_columns(logged, len(rows))
        for index, (draw, row) in enumerate(zip(draws, rows, strict=True)):
            own = {name: values[index] for name, values in extra.items()}
            scored = {name: _score(values[index]) for name, values in scores.items()}
            # functions of other tasks give no reason
            of_its_task = [name for name in functions if own.get(f"{name}/reason") is not None]
            answer = own.get(f"{of_its_task[0]}/answer") if of_its_task else None
            self.records.append(
                {
                    "item": draw.item,
                    "sample": draw.sample,
                    "greedy": greedy,
                    "group": row.get("group"),
                    "correct": own.pop("correct", None),
                    "answer": None if answer is None else str(answer),
                    "reward": _reward(list(scored.values()), weights),
                    "num_tokens": answered.num_tokens[index],
                    "truncated": bool(ids := answered.completion_ids[index]) and ids[-1] not in end_tokens,
                    "prompt": _last_text(answered.prompts[index]),
                    "completion": _last_text(answered.completions[index]),
                    "reference": json.dumps(row.get("reference"), ensure_ascii=False, default=str),
                    **{f"{name}/score": score for name, score in scored.items()},
                    **{f"{name}/right": _is_right(functions[name], score) for name, score in scored.items()},
                    **own,
                }
            )

    def _log_metric(self, name: str, value: float) -> None:
        if self.logs_metrics:
            self.logged[name].append(value)


def _score(value: float | None) -> float | None:
    """NaN says, as ``None`` does, that a completion could not be scored."""
    return None if value is None or value != value else value


def _is_right(function: RewardCallable, score: float | None) -> bool | None:
    """True for the full score, as in accuracy; ``None`` = unscored, or the function has no verifier."""
    verifier = getattr(function, "verifier", None)
    if score is None or not isinstance(verifier, Verifier):
        return None
    return score >= verifier.full_score


def _reward(scores: Sequence[float | None], weights: Sequence[float]) -> float | None:
    scored = [(score, weight) for score, weight in zip(scores, weights, strict=True) if score is not None]
    return sum(score * weight for score, weight in scored) if scored else None


def _last_text(messages: Any) -> str:
    if isinstance(messages, str):
        return messages
    # tool calls may have no content
    return messages[-1].get("content") or ""
