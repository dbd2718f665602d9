"""Judges final answers of mathematics problems: what is plain at once, algebra in worker processes."""

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from evenkeel.rewards import extraction
from evenkeel.rewards.isolation.workers import WorkerPool, WorkerResult
from evenkeel.rewards.verifier import BatchVerifier, Seconds, Verdict
from evenkeel.rewards.verifiers.math_answer.comparison import adds_percent, same
from evenkeel.rewards.verifiers.math_answer.forms import Unreadable
from evenkeel.rewards.verifiers.math_answer.notation import NOTATION, depths, matching_end, without_dollars
from evenkeel.rewards.verifiers.math_answer.quantities import product_of_powers
from evenkeel.rewards.verifiers.math_answer.reading import read, read_beside
from evenkeel.rewards.verifiers.math_answer.reference import golds, plain_wrong_answer

logger = logging.getLogger(__name__)

AnswerIn = Literal["boxed", "answer_tag", "marked"]

_TRIALS: dict[tuple[WorkerPool, str], WorkerResult] = {}
"""What became of golds that were scored alone."""

# What costs seconds and earns nothing. No safety rests on this, the kernel cuts off; reading in the trainer is short.
LONGEST_ANSWER = 300  # characters; the longest of MATH's 12,500 answers is 159
DEEPEST_NESTING = 10

_COSTLY, _COSTLY_EXPONENTS = (
    [(re.compile(pattern), name) for name, pattern in NOTATION[table].items()]
    for table in ("costly", "costly exponents")
)
_BARE_EXPONENT = re.compile(r"[-+]?\d+(?:\s*\^)?|\\[a-zA-Z]+\s*\d*")
_OPERATORS = re.compile(r"\\(?:sum|prod|i*nt|oint|lim|bigcup|bigcap)(?![a-zA-Z])")


@dataclass(frozen=True)
class _Question:
    """An answer that needs algebra, and the golds that it may still equal."""

    answer: str
    golds: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MathAnswer(BatchVerifier):
    r"""Score 1 for an answer that is mathematically the reference, and in a form that answers it, else 0.

    The answer is the content of the last ``\boxed{…}`` after the last ``</think>``, or the list of the last ones where
    they stand side by side. What counts as the same is written down in README.md. Numbers, words, sets,
    points, intervals and matrices of these are compared here, exactly; what needs algebra is asked of sympy in worker
    processes that the kernel cuts off (`isolation.workers`).

    Whatever fails while an answer is compared, an exception or a limit of time or memory, makes it wrong, ``killed``
    too where it was cut off. It is unscored only where the gold fails too: scored against its own text and a plain
    wrong answer, within the same limits. A gold is tried so once, when a first answer to it fails; anew where the wall
    time ran out, as it does on a machine that is starved.

    The reference is a text, a number, or a list of alternatives of which each is right. Of a text with a ``\boxed{…}``
    the boxes' content is meant, of one with ``####`` (GSM8K) what follows. Unscored: an empty reference, one whose
    brackets do not pair up, a number that is not finite, and anything else.

    Attributes:
        answer_in: ``boxed``, or ``answer_tag``: the one ``<answer>`` block that ends the completion; a box in it is
            unwrapped. ``marked``: the last of ``#### 12``, "The final answer is $12$." and their like, or the last box
            where no marker comes after it (`extraction.marked_answer`).
        cpu_seconds: for the algebra of one completion. MATH's answers take 0.01 s, the slowest 0.4 s.
        workers: processes that do algebra; 0 = one for each core that this rank may use.
        unevaluated_powers: whether powers and factorials of integers need not be worked out: ``2^{10}`` for 1024.
    """

    answer_in: AnswerIn = "boxed"
    cpu_seconds: Seconds = 4.0
    workers: Annotated[int, Field(ge=0)] = 0
    unevaluated_powers: bool = False

    def __post_init__(self) -> None:
        """Refuse a place where no answer is read."""
        if self.answer_in not in _PLACES:
            raise ValueError(f"answer_in = {self.answer_in!r}. Write one of {', '.join(map(repr, _PLACES))}.")

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge a batch; the worker processes share what needs algebra."""
        looks = [self._first_look(*pair) for pair in zip(completions, references, strict=True)]
        questions = [look for look in looks if isinstance(look, _Question)]
        items = [(gold, question.answer) for question in questions for gold in question.golds]
        outcomes = self._pool().map(items)
        failed = {gold: outcome.status for (gold, _), outcome in zip(items, outcomes, strict=True) if not outcome.done}
        trials = self._trials(failed, anew={gold for gold, status in failed.items() if status == "wall_limit"})
        rest = iter(outcomes)
        return [
            _answered(look, [next(rest) for _ in look.golds], trials) if isinstance(look, _Question) else look
            for look in looks
        ]

    def gold_completion(self, reference: Any) -> str | None:
        """The reference as a model would write it, without dollars, in the place that is read."""
        try:
            return _PLACES[self.answer_in].written(without_dollars(self._golds(reference)[0]))
        except ValueError:
            return None

    def wrong_completion(self, reference: Any) -> str | None:
        """A number that is hardly anyone's answer, in every place where the reference has a value."""
        if self.gold_completion(reference) is None:
            return None
        return _PLACES[self.answer_in].written(plain_wrong_answer(read(self._golds(reference)[0]).form))

    def _golds(self, reference: Any) -> tuple[str, ...]:
        return golds(reference, marked=self.answer_in == "marked")

    def _first_look(self, completion: str, reference: Any) -> Verdict | _Question:
        """The verdict where it is plain, else what is to be asked."""
        started = time.perf_counter()
        try:
            look = self._plain_verdict(completion, reference)
        except Exception as error:
            logger.exception("math_answer could not read a completion")
            look = Verdict(0.0, None, f"it cannot be read: {type(error).__name__}: {error}")
        return replace(look, seconds=time.perf_counter() - started)

    def _plain_verdict(self, completion: str, reference: Any) -> Verdict | _Question:
        try:
            right_answers = self._golds(reference)
        except Exception as error:  # noqa: BLE001 — whatever a reference does to its reader, no completion did it
            return Verdict(None, None, f"unusable reference: {error}")
        found = _PLACES[self.answer_in].read(completion)
        if found.text is None:
            return Verdict(0.0, None, found.problem)
        answer = found.text
        if not answer:
            return Verdict(0.0, "", "the answer is empty")
        undecided, reason = [], f"differs from the reference {right_answers[0]!r:.80}"
        for gold in right_answers:
            try:
                verdict = self._comparison(gold, answer)
            except Exception:  # noqa: BLE001 — it will fail in a worker too, which finds out whose fault it is
                verdict = None
            if verdict is True:
                return Verdict(1.0, answer, f"equal to the reference {gold!r:.80}")
            if verdict is None:
                undecided.append(gold)
            elif verdict:
                reason = verdict
        return _Question(answer, tuple(undecided), 0.0) if undecided else Verdict(0.0, answer[:1000], reason)

    def _comparison(self, gold: str, answer: str) -> bool | str | None:
        """``True`` = equal, ``None`` = it takes algebra to say, a text = why it is not equal."""
        if answer == gold:
            return True
        if refusal := too_long_or_deep(answer, gold):
            return f"not read: {refusal}"
        right, given = read_beside(gold, answer)
        if given.text == right.text and isinstance(given.form, Unreadable) == isinstance(right.form, Unreadable):
            return True
        if (given.value is not None and given.value == right.value) or adds_percent(right.form, given.form):
            return True
        if self.unevaluated_powers and right.value is not None and product_of_powers(given.text) == right.value:
            return True
        if isinstance(given.form, Unreadable):
            return f"not the reference {gold!r:.80}, and not readable: {given.form.reason}"
        verdict = same(right.form, given.form, lambda one, other: None)
        if verdict is None and (refusal := too_costly(given.text, right.text)):
            return f"no algebra is done with it: {refusal}"
        return f"differs from the reference {gold!r:.80}" if verdict is False else verdict

    def _trials(self, golds: Iterable[str], anew: Collection[str] = ()) -> dict[str, WorkerResult]:
        """What becomes of each gold scored against itself; of a plain wrong answer, where that is what fails.

        Kept for as long as the process lives, but for those to be tried ``anew``.
        """
        pool, wanted = self._pool(), list(golds)
        new = [gold for gold in wanted if gold in anew or (pool, gold) not in _TRIALS]
        items = [(gold, answer) for gold in new for answer in (gold, plain_wrong_answer(read(gold).form))]
        found = pool.map(items)
        for gold, itself, wrong in zip(new, found[::2], found[1::2], strict=True):
            _TRIALS[pool, gold] = itself if wrong.done else wrong
        return {gold: _TRIALS[pool, gold] for gold in wanted}

    def _pool(self) -> WorkerPool:
        return WorkerPool(
            "evenkeel.rewards.verifiers.math_answer.algebra:judge",
            cpu_seconds=self.cpu_seconds,
            wall_seconds=30 * self.cpu_seconds,
            workers=self.workers,
            warm_up=(("\\frac{\\sqrt{2}}{2}", "\\cos\\frac{\\pi}{4}"),),
        )


def _answered(question: _Question, outcomes: list[WorkerResult], trials: Mapping[str, WorkerResult]) -> Verdict:
    seconds = question.seconds + sum(outcome.seconds for outcome in outcomes)
    compared = list(zip(question.golds, outcomes, strict=True))
    right = next((gold for gold, outcome in compared if outcome.value), None)
    if right is not None:
        return Verdict(1.0, question.answer, f"equal to the reference {right!r:.80}", seconds=seconds)
    failed = [(gold, outcome) for gold, outcome in compared if not outcome.done]
    at_fault = next(((gold, trials[gold]) for gold, _ in failed if not trials[gold].done), None)
    if at_fault is not None:
        gold, trial = at_fault
        reason = f"the judge failed: {trial.status}: {trial.detail}, with {gold!r:.80} alone"
        return Verdict(None, question.answer, reason, killed=trial.killed, seconds=seconds)
    if failed:
        outcome = next((outcome for _, outcome in failed if outcome.killed), failed[0][1])
        reason = f"comparing it {'was cut off' if outcome.killed else 'failed'}: {outcome.status}: {outcome.detail}"
        return Verdict(0.0, question.answer, reason, killed=outcome.killed, seconds=seconds)
    return Verdict(0.0, question.answer, f"differs from the reference {question.golds[0]!r:.80}", seconds=seconds)


def _tagged_answer(completion: str) -> extraction.Extraction:
    block = extraction.answer_block(completion)
    boxed = extraction.boxed_answers(block.text or "")
    return block if boxed.text is None else boxed


class _Place(NamedTuple):
    """Where an answer stands: how it is read there, and how it is written."""

    read: Callable[[str], extraction.Extraction]
    written: Callable[[str], str]


_PLACES: dict[AnswerIn, _Place] = {
    "boxed": _Place(extraction.boxed_answers, "\\boxed{{{}}}".format),
    "answer_tag": _Place(_tagged_answer, "<answer>\\boxed{{{}}}</answer>".format),
    "marked": _Place(extraction.marked_answer, lambda answer: f"#### ${' '.join(answer.split())}$"),
}


def too_long_or_deep(answer: str, gold: str) -> str:
    """Why ``answer`` is not even read; empty where it is. A gold that is long itself allows as long an answer again."""
    longest = max(LONGEST_ANSWER, 2 * len(gold))
    if len(answer) > longest:
        return f"{len(answer)} characters, more than the {longest} that are read"
    deepest = max([DEEPEST_NESTING, *depths(gold)])
    if (depth := max(depths(answer), default=0)) > deepest:
        return f"brackets nested {depth} deep, more than the {deepest} that are read"
    return ""


def too_costly(answer: str, gold: str) -> str:
    """Why no algebra is done with ``answer``; empty where it is."""
    for pattern, name in _COSTLY:
        if pattern.search(answer) and not pattern.search(gold):
            return f"it holds {name}"
    exponents, allowed = _exponents(answer), _exponents(gold)
    for pattern, name in _COSTLY_EXPONENTS:
        if any(map(pattern.match, exponents)) and not any(map(pattern.match, allowed)):
            return f"it holds {name}"
    if (operator := _OPERATORS.search(answer)) and not _OPERATORS.search(gold):
        return f"it holds {operator[0]}, and the reference does not"
    return ""


def _exponents(text: str) -> list[str]:
    r"""The exponents of ``text``, each to its closing bracket, or that of its command (``^\frac{1}{2}``)."""
    text, found = re.sub(r"\\(?:left|right)(?![a-zA-Z])", "", text), []
    for sign in re.finditer(r"\^\s*", text):
        bare = _BARE_EXPONENT.match(text, sign.end())
        end = bare.end() if bare else sign.end()
        while text[end : end + 1] in ("{", "(") and (bare is None or bare[0].startswith("\\")):
            closing = matching_end(text, end)
            end = closing if closing > 0 else len(text)
            if bare is None:
                break
        found.append(text[sign.end() : end])
    return found
