"""Right or wrong by the library's own scorer, which runs where it can harm nobody."""

import functools
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from evenkeel.rewards.extraction import answer_block
from evenkeel.rewards.isolation.sandbox import Isolation, Job, Limits, Run, Sandbox
from evenkeel.rewards.verifier import Verdict, Verifier
from evenkeel.rewards.verifiers.countdown import Countdown
from evenkeel.rewards.verifiers.reasoning_gym.entries import MISSING, is_installed
from evenkeel.rewards.verifiers.reasoning_gym.guard import objection

THRESHOLD = 0.999  # scorers add floats; below it they pay for parts

_SOURCE = Path(__file__).with_name("inside_sandbox.py").read_text(encoding="utf-8")
_PUZZLE24 = Countdown(use_all=True)


@dataclass(frozen=True)
class ReasoningGym(Verifier):
    """Score 1 where the task's own scorer gives its full score to the answer, else 0: partial scores do not count.

    The answer is the one ``<answer>`` block that ends the completion after the last ``</think>``. The scorer runs in
    the sandbox, one process an answer, and sees only answers of at most 20,000 characters that cannot be programs
    (`reasoning_gym.guard`). Cut off at a limit: 0, and ``killed``. ``puzzle24`` is judged by
    `countdown`: the library's scorer does not look at which numbers were given. An answer to ``knights_knaves``
    may hold no word that the entry's own has not; our own `knights_knaves` has puzzles of this kind, judges them by
    their statements, and reads more ways to write an answer.

    The reference is a mapping with ``task``, ``entry`` and ``config`` as `reasoning_gym_rows` writes them; ``entry``
    may be any JSON text with ``question``, ``answer`` and ``metadata``. Unjudged: another form, an unknown task, an
    entry that its scorer cannot use. Some tasks' own answers do not satisfy their scorer (``propositional_logic``);
    the check of the references before training refuses them.

    Attributes:
        cpu_seconds: for scoring one answer.
        isolation: of the sandbox, see `evenkeel.rewards.isolation.sandbox`.
    """

    cpu_seconds: Annotated[float, Field(gt=0)] = 10.0
    isolation: Isolation = "landlock_seccomp"

    def __post_init__(self) -> None:
        """Check that the library is there."""
        if not is_installed():
            raise ValueError(MISSING)

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge ``completion`` against ``reference``."""
        return self._judged([completion], [reference])[0]

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge a batch, as many answers at once as there are slots."""
        return self._judged(completions, references)

    def gold_completion(self, reference: Any) -> str | None:
        """The entry's answer; ``None`` where the task has none to write down and its scorer looks for itself."""
        try:
            answer = _read_reference(reference).answer
        except ValueError:
            return None
        return f"<think>so</think><answer>{answer}</answer>" if isinstance(answer, str) else None

    def _judged(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        verdicts = [_without_scorer(*row) for row in zip(completions, references, strict=True)]
        waiting = [row for row, verdict in enumerate(verdicts) if verdict is None]
        nonces = [secrets.token_hex(16) for _ in waiting]
        jobs = [
            Job(_SOURCE, _request(nonce, completions[row], references[row]), self._limits())
            for nonce, row in zip(nonces, waiting, strict=True)
        ]
        runs = _sandbox(self.isolation).run_all(jobs) if jobs else []
        for row, nonce, run in zip(waiting, nonces, runs, strict=True):
            answer = answer_block(completions[row]).text
            verdicts[row] = replace(_verdict(run, nonce), answer=answer, seconds=run.seconds)
        return [verdict for verdict in verdicts if verdict is not None]

    def _limits(self) -> Limits:
        return Limits(cpu_seconds=self.cpu_seconds, wall_seconds=5 * self.cpu_seconds + 10)


@functools.cache
def _sandbox(isolation: Isolation) -> Sandbox:
    """One for all verifiers of the process: its zygote holds the library in memory."""
    return Sandbox(isolation=isolation, preimported=("reasoning_gym",))


@dataclass(frozen=True)
class _Reference:
    task: str
    config: str
    entry: str
    answer: Any
    metadata: Mapping[str, Any]


def _read_reference(reference: Any) -> _Reference:
    """Raises ``ValueError`` where the parts are not there; whether the scorer can use them shows in the sandbox."""
    if not isinstance(reference, Mapping) or not {"task", "entry"} <= reference.keys():
        raise ValueError(f"the reference is {reference!r:.80}; reasoning_gym needs 'task' and 'entry'")
    task, entry, config = reference["task"], reference["entry"], reference.get("config") or "{}"
    try:
        read = json.loads(entry)
        if not isinstance(task, str) or not isinstance(config, str):
            raise TypeError("task and config are texts")
        return _Reference(task, config, entry, read["answer"], read["metadata"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the entry is no JSON text with question, answer and metadata: {error!r:.80}") from error


def _without_scorer(completion: str, reference: Any) -> Verdict | None:
    """The verdict where no scorer is needed for it."""
    try:
        read = _read_reference(reference)
    except ValueError as error:
        return Verdict(None, None, str(error))
    block = answer_block(completion)
    if not block.text:
        return Verdict(0.0, block.text, block.problem or "the answer is blank")
    if problem := objection(read.task, block.text, read.answer):
        return Verdict(0.0, block.text, problem)
    if read.task == "puzzle24":
        return _PUZZLE24(completion, {"numbers": read.metadata.get("numbers"), "target": 24})
    return None


def _request(nonce: str, completion: str, reference: Any) -> bytes:
    read = _read_reference(reference)
    answer = answer_block(completion).text
    fields = {"nonce": nonce, "task": read.task, "config": read.config, "entry": read.entry, "answer": answer}
    return json.dumps(fields).encode()


def _verdict(run: Run, nonce: str) -> Verdict:
    if run.status == "failed_to_start":
        return Verdict(None, None, f"the sandbox failed: {run.problem}")
    if run.status == "starved":
        return Verdict(None, None, f"the machine is too busy: scoring had no processor for {run.waited_seconds:.0f} s")
    if run.killed:
        return Verdict(0.0, None, f"scoring was cut off ({run.status} after {run.seconds:.1f} s)", killed=True)
    lines = run.stdout.decode(errors="replace").splitlines()
    written = [line.removeprefix(f"{nonce} ") for line in lines if line.startswith(f"{nonce} ")]
    try:
        found = json.loads(written[-1])
    except (IndexError, ValueError):
        return Verdict(0.0, None, f"scoring left no score (exit code {run.exit_code})")
    if "problem" in found:
        return Verdict(None, None, f"the task cannot score this entry: {found['problem']:.200}")
    if found["score"] >= THRESHOLD:
        return Verdict(1.0, None, "the scorer's full score")
    return Verdict(0.0, None, found.get("why") or f"the scorer gives {found['score']:.3g}, and only 1 counts")
