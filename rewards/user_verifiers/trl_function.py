"""Reward functions as TRL's users write them, ``f(completions, **columns)``, called once for a batch."""

import inspect
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.user_verifiers.traits import name_of, written
from evenkeel.rewards.verifier import NOT_APPLICABLE, TokenVerifier, Verdict, as_verdict, tokens

BATCH = ("completions", "completion_ids", "prompts")
"""Arguments by one of which a function of TRL's is recognized."""
HOOKS = ("trainer_state", "log_extra", "log_metric")
REFERENCE_COLUMNS = (
    *("solution", "answer", "ground_truth", "reference", "target", "gold", "label", "expected", "final_answer"),
    *("gold_answer", "correct_answer", "solutions", "answers", "ground_truths", "references", "targets", "labels"),
)
"""Usual names of the column that holds the reference."""


class TrainerState(SimpleNamespace):
    """The fields of TRL's ``trainer_state``; one object for all rows of a batch, also in copies of them."""

    def __deepcopy__(self, memo: Any) -> "TrainerState":
        return self


AT_START = TrainerState(global_step=0, max_steps=100, epoch=0.0, num_train_epochs=1, log_history=[])


class ReturnError(ValueError):
    """What a reward function returned is not a number, or ``None``, for each completion."""


class TRLFunction(TokenVerifier):
    """A function with TRL's signature, sync or async; its reference is a row: ``prompt``, ``trainer_state``, columns.

    The function gets what TRL passes, as far as it takes it: messages where the prompt has messages, else texts. A
    column of `REFERENCE_COLUMNS` that it names and rows lack is ``reference``; fields of a reference that is a
    mapping are columns too. ``None`` in its list is a verdict that does not apply.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function  # its options are those of a `functools.partial`
        parameters = inspect.signature(function).parameters.values()
        self.takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
        named = [each for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
        self._options = {*getattr(function, "keywords", ())}
        self._named = {each.name for each in named} - self._options
        self._needed = {each.name for each in named if each.default is each.empty}

    @property
    def reads_reference(self) -> bool:  # type: ignore[override]
        """As declared; else whether the function names ``prompts`` or a column."""
        others = self._named - {"completions", "completion_ids", *HOOKS}
        return bool(getattr(written(self), "reads_reference", others))

    @property
    def is_async(self) -> bool:
        """Whether calls of the function are awaited."""
        function = written(self)
        return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))

    @cached_property
    def _loop(self) -> Any:
        """One event loop for all calls: a session that the function keeps open belongs to it."""
        import asyncio  # of use to few

        return asyncio.new_event_loop()

    def check_columns(self, row: Mapping[str, Any]) -> None:
        """Refuse rows that lack a column which the function needs."""
        if lacks := self._needed - {*BATCH, *HOOKS, *self._columns(row)}:
            has = ", ".join(name for name in self._columns(row) if name not in ("prompt", "trainer_state"))
            what = f"verifier {name_of(self)} needs the column {', '.join(sorted(lacks))}, and the rows have: {has}."
            raise Refusal(f"{what} Rename one of them, or give an option.", code="missing-column")

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Score one completion, as a batch of one."""
        return self.judge_all([completion], [reference], [token_ids])[0]

    def judge_all(
        self,
        completions: Sequence[Any],
        references: Sequence[Any],
        token_ids: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Verdict]:
        """Score a batch; what the function logs becomes columns of each verdict, and metrics of the first.

        Raises:
            ReturnError: the function did not return a list of numbers and ``None``; or another number of rewards, or
                of values in a column that it logs, than there are completions.
        """
        logged, metrics = defaultdict[str, list[Any]](list), list[tuple[str, float]]()
        arguments = self._arguments(completions, references, token_ids or [None] * len(completions))
        arguments["log_extra"] = lambda column, values: logged[column].extend(values)
        arguments["log_metric"] = lambda name, value: metrics.append((name, float(value)))
        rewards = rewards_of(self.called(arguments))
        for what, values in {"rewards": rewards, **logged}.items():
            if len(values) != len(completions):
                raise ReturnError(f"it returned {len(values)} {what} for {len(completions)} completions")
        logged = json.loads(json.dumps(logged, default=str))
        verdicts = []
        for row, reward in enumerate(rewards):
            reason = NOT_APPLICABLE if reward is None else f"it returned {reward:g}"
            columns = {name: values[row] for name, values in logged.items()}
            verdicts.append(Verdict(reward, None, reason, applies=reward is not None, columns=columns))
        return [replace(verdicts[0], metrics=metrics), *verdicts[1:]]

    def called(self, arguments: Mapping[str, Any]) -> Any:
        """What the function returns for those of ``arguments`` that it takes, awaited where it has to be."""
        taken = arguments.keys() - self._options if self.takes_any else self._named
        returned = self.function(**{name: value for name, value in arguments.items() if name in taken})
        return self._loop.run_until_complete(returned) if isinstance(returned, Awaitable) else returned

    def _columns(self, row: Mapping[str, Any]) -> dict[str, Any]:
        reference = row.get("reference")
        usual = {name: reference for name in REFERENCE_COLUMNS if name in self._named and "reference" in row}
        return {**usual, **(reference if isinstance(reference, Mapping) else {}), **row}

    def _arguments(self, completions: Sequence[Any], rows: Sequence[Any], token_ids: Sequence[Any]) -> dict[str, Any]:
        filled = [self._columns(row) for row in rows]
        names = dict.fromkeys(name for row in filled for name in row if name not in ("prompt", "completion"))
        prompts = [row.get("prompt", "") for row in rows]
        is_chat = not isinstance(prompts[0], str)
        chat = [[{"role": "assistant", "content": each}] if isinstance(each, str) else each for each in completions]
        return {name: [row.get(name) for row in filled] for name in names} | {
            "prompts": prompts,
            "completions": chat if is_chat else completions,
            "completion_ids": [tokens(f"{text} <end>", ids) for text, ids in zip(completions, token_ids, strict=True)],
            "trainer_state": next((row["trainer_state"] for row in rows if "trainer_state" in row), AT_START),
        }


def rewards_of(returned: Any) -> list[float | None]:
    """What a function returned as rewards; a `ReturnError` where it is something else."""
    if not isinstance(returned, Iterable):
        raise ReturnError(f"it returned {returned!r:.60}. Return a list: a number, or None, for each completion.")
    try:
        return [as_verdict(reward).score for reward in returned]
    except (TypeError, ValueError) as error:
        raise ReturnError(str(error)) from error
