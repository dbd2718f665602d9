"""Call a reward function with cases, and collect its rewards and faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evenkeel.rewards.bench.audit.cases import Case
from evenkeel.rewards.isolation.workers import WorkerPool, WorkerResult
from evenkeel.rewards.user_verifiers.trl_function import REFERENCE_COLUMNS
from evenkeel.rewards.verifier import score_problem

Signature: TypeAlias = Literal["TRL", "verl", "verifier"]
Shape: TypeAlias = Literal["messages", "text"]

ANSWER = "ANSWER"
"""Placeholder of the answer in a form, and of the gold in a column."""
MOST_ENDS = 20
"""Crashes and timeouts after which no more cases are run."""
FIRST_SECONDS = 30.0
"""Wall time of a worker's first call, which may import modules and start processes."""


@dataclass(frozen=True)
class Asked:
    """A case with its reward (``None`` = unscored) or its ``fault``.

    ``end``: the function's process crashed or ran out of time; empty for an exception.
    """

    case: Case
    reward: float | None
    fault: str = ""
    end: Literal["", "crash", "over time"] = ""
    seconds: float = 0.0


@dataclass
class Caller:
    """Calls the function in its processes as its signature requires, and counts its crashes and timeouts.

    Attributes:
        takes_any: whether it has **kwargs.
        columns: names that hold the reference, in addition to `REFERENCE_COLUMNS`.
        gold: template of a reference in a column, with `ANSWER`.
        seconds: wall time of one call.
        shape: of TRL's ``completions``.
    """

    pool: WorkerPool
    signature: Signature
    takes_any: bool
    columns: Sequence[str]
    gold: str
    seconds: float = FIRST_SECONDS
    shape: Shape = "text"
    is_warm: bool = False
    ends: int = 0

    def ask(self, cases: Sequence[Case], at_once: int = 1) -> list[Asked]:
        """Run the cases in their order, ``at_once`` in a call; stops after `MOST_ENDS` crashes and timeouts."""
        if cases and not self.is_warm:
            self.is_warm = True
            self.pool.map([self.item(cases[:1])] * self.pool.workers, FIRST_SECONDS)
        asked: list[Asked] = []
        calls = [cases[start : start + at_once] for start in range(0, len(cases), at_once)]
        for start in range(0, len(calls), MOST_ENDS):
            if self.ends >= MOST_ENDS:
                break
            some = calls[start : start + MOST_ENDS]
            for call, result in zip(some, self.pool.map([self.item(call) for call in some], self.seconds), strict=True):
                asked += self._asked(call, result)
        return asked

    def item(self, cases: Sequence[Case]) -> dict[str, Any]:
        """The call for ``cases``, as `audited.answers_of` takes it."""
        return {"completions": [case.completion for case in cases], "references": list(map(self._reference, cases))}

    def _reference(self, case: Case) -> Any:
        """A case as a row of data: the reference under each usual name, and the reference's own fields."""
        reference, question = case.row.reference, case.row.question
        if self.signature == "verifier":
            return reference
        fields = dict(reference) if isinstance(reference, Mapping) else {}
        gold = fields.get("answer", reference) if fields else str(reference)
        if isinstance(gold, str):
            gold = self.gold.replace(ANSWER, gold)
        if self.signature == "verl":
            extra = {"question": question, "index": 0, "split": "train"}
            row = {"data_source": "audit", "solution_str": case.completion, "ground_truth": gold, "extra_info": extra}
            return row | dict.fromkeys(self.columns, gold)
        if "numbers" in fields:
            fields["nums"] = fields["numbers"]
        asked = {"question": question, "problem": question, "data_source": "audit"}
        prompt = question if self.shape == "text" else [{"role": "user", "content": question}]
        usual = dict.fromkeys(REFERENCE_COLUMNS, gold)
        return asked | usual | fields | dict.fromkeys(self.columns, gold) | {"prompt": prompt}

    def _asked(self, cases: Sequence[Case], result: WorkerResult) -> list[Asked]:
        if not result.done:
            end: Literal["crash", "over time"] = "over time" if result.status == "wall_limit" else "crash"
            self.ends += 1
            fault = result.detail if end == "over time" else f"its process ended {result.detail}"
            return [Asked(case, None, fault, end, result.seconds) for case in cases]
        found = result.value
        rewards, seconds = found["rewards"] or [None] * len(cases), found["seconds"] / len(cases)
        asked = []
        for case, reward in zip(cases, rewards, strict=True):
            is_number = reward is None or not score_problem(reward)
            fault = found["fault"] or ("" if is_number else f"its reward is {reward}")
            asked.append(Asked(case, reward if is_number else None, fault, seconds=seconds))
        return asked
