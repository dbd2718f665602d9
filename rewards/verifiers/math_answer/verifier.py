"""Judges final answers of mathematics problems: what is plain at once, algebra in worker processes."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rewards.extraction import ANSWER_CLOSES, ANSWER_OPENS, Extraction, answer_block, boxed_answers
from rewards.isolation.workers import WorkerPool, WorkerResult
from rewards.verifier import Verdict, Verifier
from rewards.verifiers.math_answer.comparison import same
from rewards.verifiers.math_answer.forms import Unreadable, unreadable_part
from rewards.verifiers.math_answer.guard import too_costly, too_long_or_deep
from rewards.verifiers.math_answer.notation import without_dollars
from rewards.verifiers.math_answer.numerals import product_of_powers
from rewards.verifiers.math_answer.reading import read
from rewards.verifiers.math_answer.reference import golds

logger = logging.getLogger(__name__)

AnswerIn = Literal["boxed", "answer_tag"]

_WARM_UP = ("\\frac{\\sqrt{2}}{2}", "\\cos\\frac{\\pi}{4}")


@dataclass(frozen=True)
class _Question:
    """An answer that needs algebra, and the golds that it may still equal."""

    answer: str
    golds: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MathAnswer(Verifier):
    r"""Score 1 for an answer that is mathematically the reference, and in a form that answers it, else 0.

    The answer is the content of the last ``\boxed{…}`` after the last ``</think>``, or the list of the last ones where
    they stand side by side. What counts as the same is written down in `math_answer.comparison`. Numbers, words, sets,
    points, intervals and matrices of these are compared here, exactly; what needs algebra is asked of sympy in worker
    processes that the kernel cuts off (`isolation.workers`): cut off by CPU time or memory is score 0 with ``killed``;
    starved of time on a busy machine, twice, is unjudged.

    The reference is a text, a number, or a list of alternatives of which each is right. Of a text with a ``\boxed{…}``
    the boxes' content is meant, of one with ``####`` (GSM8K) what follows. Unjudged: an empty reference, one whose
    brackets do not pair up, a number that is not finite, and anything else.

    Attributes:
        answer_in: ``boxed``, or ``answer_tag``: the one ``<answer>`` block that ends the completion; a box in it is
            unwrapped.
        cpu_seconds: for the algebra of one completion. MATH's answers take 0.01 s, the slowest 0.4 s.
        workers: processes that do algebra; 0 = one for each core that this rank may use.
        unevaluated_powers: whether powers and factorials of integers need not be worked out: ``2^{10}`` for 1024.
    """

    answer_in: AnswerIn = "boxed"
    cpu_seconds: float = 4.0
    workers: int = 0
    unevaluated_powers: bool = False

    def __post_init__(self) -> None:
        """Refuse options that cannot work."""
        if self.answer_in not in ("boxed", "answer_tag"):
            raise ValueError(
                f"answer_in = {self.answer_in!r}: an answer is read from one of two places; write 'boxed' for the last "
                "\\boxed{…} or 'answer_tag' for the <answer> block at the end"
            )
        self._pool()  # which checks its limits

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge ``completion`` against ``reference``."""
        return self.judge_all([completion], [reference])[0]

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge a batch; the worker processes share what needs algebra."""
        looks = [self._first_look(*pair) for pair in zip(completions, references, strict=True)]
        questions = [look for look in looks if isinstance(look, _Question)]
        items = [(gold, question.answer) for question in questions for gold in question.golds]
        outcomes = iter(self._pool().map(items))
        return [
            _answered(look, [next(outcomes) for _ in look.golds]) if isinstance(look, _Question) else look
            for look in looks
        ]

    def gold_completion(self, reference: Any) -> str | None:
        """The reference as a model would write it, boxed, without dollars; in answer tags where those are read."""
        try:
            boxed = f"\\boxed{{{without_dollars(golds(reference)[0])}}}"
        except ValueError:
            return None
        return boxed if self.answer_in == "boxed" else f"{ANSWER_OPENS}{boxed}{ANSWER_CLOSES}"

    def reference_remark(self, reference: Any) -> str:
        """That nothing but its own text can equal it, where that is so."""
        try:
            reasons = [unreadable_part(read(gold).form) for gold in golds(reference)]
        except ValueError:
            return ""
        return f"only its own text is right: {reasons[0]}" if all(reasons) else ""

    def _first_look(self, completion: str, reference: Any) -> Verdict | _Question:
        """The verdict where it is plain, else what is to be asked."""
        started = time.perf_counter()
        try:
            look = self._plain_verdict(completion, reference)
        except Exception as error:
            logger.exception("math_answer could not judge a completion against %.200r", reference)
            look = Verdict(None, None, f"the verifier failed: {type(error).__name__}: {error}")
        return replace(look, seconds=time.perf_counter() - started)

    def _plain_verdict(self, completion: str, reference: Any) -> Verdict | _Question:
        try:
            right_answers = golds(reference)
        except ValueError as error:
            return Verdict(None, None, f"unusable reference: {error}")
        found = boxed_answers(completion) if self.answer_in == "boxed" else _tagged_answer(completion)
        if found.text is None:
            return Verdict(0.0, None, found.problem)
        answer = found.text
        if not answer:
            return Verdict(0.0, "", "the answer is empty")
        undecided, reason = [], f"differs from the reference {right_answers[0]!r:.80}"
        for gold in right_answers:
            verdict = self._comparison(gold, answer)
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
        right, given = read(gold), read(answer)
        if given.text == right.text or (given.value is not None and given.value == right.value):
            return True
        if self.unevaluated_powers and right.value is not None and product_of_powers(given.text) == right.value:
            return True
        if isinstance(given.form, Unreadable):
            return f"not the reference {gold!r:.80}, and not readable: {given.form.reason}"
        verdict = same(right.form, given.form, lambda one, other: None)
        if verdict is None and (refusal := too_costly(answer, gold)):
            return f"no algebra is done with it: {refusal}"
        return f"differs from the reference {gold!r:.80}" if verdict is False else verdict

    def _pool(self) -> WorkerPool:
        return WorkerPool(
            "rewards.verifiers.math_answer.judgement:judge",
            cpu_seconds=self.cpu_seconds,
            wall_seconds=30 * self.cpu_seconds,
            workers=self.workers,
            warm_up=(_WARM_UP,),
        )


def _answered(question: _Question, outcomes: list[WorkerResult]) -> Verdict:
    seconds = question.seconds + sum(outcome.seconds for outcome in outcomes)
    right = next((gold for gold, outcome in zip(question.golds, outcomes, strict=True) if outcome.value), None)
    unjudged = next((outcome for outcome in outcomes if outcome.status in ("wall_limit", "raised")), None)
    killed = next((outcome for outcome in outcomes if outcome.killed), None)
    if right is not None:
        return Verdict(1.0, question.answer, f"equal to the reference {right!r:.80}", seconds=seconds)
    if unjudged is not None:
        reason = f"the judge failed: {unjudged.status}: {unjudged.detail}"
        return Verdict(None, question.answer, reason, killed=unjudged.killed, seconds=seconds)
    if killed is not None:
        reason = f"comparing it was cut off: {killed.status}: {killed.detail}"
        return Verdict(0.0, question.answer, reason, killed=True, seconds=seconds)
    return Verdict(0.0, question.answer, f"differs from the reference {question.golds[0]!r:.80}", seconds=seconds)


def _tagged_answer(completion: str) -> Extraction:
    block = answer_block(completion)
    boxed = boxed_answers(block.text or "")
    return block if boxed.text is None else boxed
