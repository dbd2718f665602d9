"""Run all cases through one reward function, and find what is wrong with its rewards.

It runs in worker processes, one case a call; then the ordinary cases are repeated in batches and in another order. A
call that hangs is killed; one that crashes loses only its cases.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from statistics import mean

from evenkeel.errors import Refusal
from evenkeel.rewards.bench.audit.caller import ANSWER, FIRST_SECONDS, MOST_ENDS, Asked, Caller, Shape, Signature
from evenkeel.rewards.bench.audit.cases import (
    FORMS,
    KINDS,
    NO_THOUGHT,
    RIGHT,
    TASKS,
    USUAL_FORMS,
    Case,
    Kind,
    audit_cases,
    audit_rows,
    gold_in,
    is_number,
)
from evenkeel.rewards.bench.built_in import BUILT_IN, Row
from evenkeel.rewards.isolation.workers import WorkerPool, WorkerStartError
from evenkeel.rewards.verifier import Verifier

BATCH = 8
"""Cases in a call of the repetition."""
SECONDS, CODE_SECONDS = 5.0, 30.0
"""Wall time of one call; programs have limits of their own."""


@dataclass(frozen=True)
class Fault:
    """A violation; ``asked`` is ``None`` where it concerns the function as a whole."""

    problem: str
    detail: str
    asked: Asked | None = None


@dataclass(frozen=True)
class Audit:
    """The outcome for one function.

    Attributes:
        signature, task, form, shape: how the function was called.
        right_at: the smallest reward that counts as paid.
        asked: every case with its reward.
        findings: on the function as a whole, then one for each wrong case.
        notes: sentences on cases that were left out.
    """

    function: str
    signature: Signature
    task: str
    form: str
    shape: Shape
    right_at: float
    asked: list[Asked]
    findings: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def is_paid(self, asked: Asked) -> bool:
        """Whether the case's reward counts as paid."""
        return asked.reward is not None and asked.reward >= self.right_at

    def of_kinds(self, *kinds: Kind) -> list[Asked]:
        """The cases of these kinds."""
        return [each for each in self.asked if each.case.kind in kinds]


def audit(
    function: str, *, task: str | None = None, columns: Sequence[str] = (), form: str | None = None, gold: str = ANSWER
) -> Audit:
    """Ask ``function`` every case of its task.

    Rewards count as paid from half the largest reward of a right answer.

    Args:
        function: ``module:function``, or a built-in verifier's name.
        task: a key of `TASKS` or of `BUILT_IN`; ``None`` = the verifier's own, and mathematics for other functions.
        columns: parameters that hold the reference, in addition to `REFERENCE_COLUMNS`.
        form: a text with `ANSWER` in it, as the function expects answers; ``None`` = the best read of `FORMS`.
        gold: a text with `ANSWER` in it, as the column holds references.

    Raises:
        Refusal: the function cannot be imported, or ``form`` or ``gold`` lacks `ANSWER`.
    """
    for option, text in {"--form": form or ANSWER, "--gold": gold}.items():
        if ANSWER not in text:
            raise Refusal(f"{option} {text!r} does not say where the answer stands. Write {ANSWER} there.")
    pool = WorkerPool(
        "evenkeel.rewards.bench.audited:answers_of",
        argument=TASKS.get(function, function),
        cpu_seconds=0,
        wall_seconds=FIRST_SECONDS,
        workers=2,
        users=True,
    )
    with closing(pool):
        caller = _caller(function, pool, columns, gold)
        chosen = TASKS.get(task or function, task or function)
        chosen = chosen if task or chosen in BUILT_IN else TASKS["math"]
        verifier, rows = audit_rows(chosen)
        caller.seconds = CODE_SECONDS if chosen == "code_tests" else SECONDS
        reading, notes = _reading(caller, verifier, rows, chosen, form), []
        cases = list(audit_cases(chosen, verifier, reading, rows))
        asked = caller.ask([case for case in cases if case.kind == "gold"])
        if chosen == "math_answer" and _pays_numbers_alone(asked):
            notes.append("it pays only golds that are numbers: other golds were left out")
            cases = list(audit_cases(chosen, verifier, reading, rows, numbers=True))
            asked = [each for each in asked if is_number(each.case.row.reference)]
        nothing = verifier.reads_reference and not any(map(_is_positive, asked))
        for kind in () if nothing else [kind for kind in KINDS if kind != "gold"]:
            of_kind = [case for case in cases if case.kind == kind]
            asked += (answers := caller.ask(of_kind))
            if left_out := len(of_kind) - len(answers):
                notes.append(f"not asked: {left_out} of {KINDS[kind]!r}")
        again = [] if nothing or caller.ends >= MOST_ENDS else list(_of_other_calls(caller, asked))
    form, threshold = reading.format(ANSWER), _right_at(asked)
    result = Audit(function, caller.signature, chosen, form, caller.shape, threshold, asked, notes=notes)
    if nothing:
        result.findings.append(_pays_no_gold(asked))
        return result
    if caller.signature == "TRL" and not caller.takes_any:
        detail = "it takes no **kwargs, and TRL passes trainer_state, log_extra, log_metric and every column"
        result.findings.append(Fault("fails in TRL", detail))
    result.findings.extend([*again, *_of_cases(result, verifier)])
    return result


def _caller(function: str, pool: WorkerPool, columns: Sequence[str], gold: str) -> Caller:
    try:
        (described,) = pool.map([None])
    except WorkerStartError as error:
        said = str(error).strip().splitlines()[-1]
        raise Refusal(f"{function} cannot be audited: {said.rpartition('PartError: ')[2]}") from error
    return Caller(pool, described.value["signature"], described.value["any"], columns, gold)


def _reading(caller: Caller, verifier: Verifier, rows: Sequence[Row], task: str, form: str | None) -> str:
    """The form in which the function most often pays a row's gold more than another row's.

    Ties go to the form with the fewest faults, then the highest mean reward of golds. Sets ``caller.shape`` likewise.
    """
    usual = FORMS[USUAL_FORMS.get(task, "answer block on lines")]
    forms = list(dict.fromkeys([usual, *FORMS.values()]))
    if form is not None:
        forms = [form.replace("{", "{{").replace("}", "}}").replace(ANSWER, "{}")]
    shapes: list[Shape] = ["messages", "text"] if caller.signature == "TRL" else ["text"]
    best: tuple[tuple[float, ...], str, Shape] = (-1.0,), usual, "text"
    for text, caller.shape in product(forms, shapes):
        golds = [gold_in(text, verifier, row.reference) or "" for row in rows]
        pairs = zip(rows, golds, [*golds[1:], golds[0]], strict=True)
        cases = [Case("gold", "gold", row, completion) for row, *both in pairs for completion in both]
        asked = caller.ask(cases)
        rewards = [each.reward for each in asked] + [None] * (len(cases) - len(asked))
        wins = [
            gold is not None and gold > (other or 0.0) for gold, other in zip(rewards[::2], rewards[1::2], strict=True)
        ]
        paid = [gold for gold in rewards[::2] if gold is not None]
        score = (sum(wins), -sum(each.fault != "" for each in asked), mean(paid) if paid else 0.0)
        best = max(best, (score, text, caller.shape), key=lambda tried: tried[0])
        if all(wins) or caller.ends >= MOST_ENDS:
            break
    _, text, caller.shape = best
    return text


def _right_at(asked: Sequence[Asked]) -> float:
    """Half the largest reward of a right answer; where none is above 0, that reward."""
    right = [each.reward for each in asked if each.case.kind in RIGHT and each.reward is not None]
    largest = max(right, default=1.0)
    return largest / 2 if largest > 0 else largest


def _is_positive(gold: Asked) -> bool:
    return gold.reward is not None and gold.reward > 0


def _pays_numbers_alone(golds: Sequence[Asked]) -> bool:
    """Whether it pays numbers and under a tenth of the other golds: "5 cm" may be read for its number."""
    paid = [is_number(each.case.row.reference) for each in golds if _is_positive(each)]
    others = sum(not is_number(each.case.row.reference) for each in golds)
    return any(paid) and paid.count(False) < others / 10


def _pays_no_gold(golds: Sequence[Asked]) -> Fault:
    """The only finding on a function that paid no gold: it was probably called in the wrong way."""
    rewards = [each.reward for each in golds if each.reward is not None]
    said = f"the largest reward of one is {max(rewards):g}" if rewards else "none has a reward"
    (fault, count), *_ = [*Counter(each.fault for each in golds if each.fault).most_common(1), ("", 0)]
    said += f"; {count} of {len(golds)}: {fault}" if fault else ""
    return Fault("pays no gold", f"in any form that was tried, {said}. Try --task, --column or --form")


def _of_cases(audit: Audit, verifier: Verifier) -> Iterator[Fault]:
    thoughtless = [each for each in audit.of_kinds("thought") if each.case.name == NO_THOUGHT]
    asks_for_none = any(map(audit.is_paid, thoughtless))
    for asked in audit.asked:
        kind = asked.case.kind
        if asked.fault:
            yield Fault(asked.end or "fault", asked.fault, asked)
        elif asked.reward is None:
            yield Fault("unscored", "None", asked)
        elif kind in RIGHT and not audit.is_paid(asked):
            yield Fault("right answer refused", f"reward {asked.reward:g}", asked)
        elif (
            kind not in RIGHT
            and audit.is_paid(asked)
            and (verifier.reads_reference or (kind == "empty" and audit.right_at > 0))
            and not (kind == "thought" and asks_for_none)
        ):
            problem = "wrong answer paid" if kind == "wrong" else "exploit paid"
            yield Fault(problem, f"reward {asked.reward:g}", asked)


def _of_other_calls(caller: Caller, asked: Sequence[Asked]) -> Iterator[Fault]:
    """Rewards that change when the ordinary cases are repeated, shuffled, and in batches where it takes them."""
    ordinary = [each for each in asked if not each.fault and each.case.kind != "adversarial"]
    random.Random(0).shuffle(ordinary)
    at_once = 1 if caller.signature == "verl" else BATCH
    second = caller.ask([each.case for each in ordinary], at_once)
    failed = Counter(now.fault for now in second if now.fault)
    for fault, count in failed.items():
        detail = f"{fault}: {count} of {len(second)} cases that have a reward when called singly, in calls of {at_once}"
        yield Fault("fails in a batch", detail)
    for before, now in zip(ordinary, second, strict=False):
        if not now.fault and before.reward != now.reward:
            yield Fault("changes from call to call", f"first {before.reward}, then {now.reward}", before)
