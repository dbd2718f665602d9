"""The verifier by the library's scorers, which run in the sandbox."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenkeel.rewards.extraction import Extraction, answer_block
from evenkeel.rewards.isolation.sandbox import Isolation, Job, Limits, Run, shared_sandbox
from evenkeel.rewards.verifier import BatchVerifier, Seconds, Verdict
from evenkeel.rewards.verifiers.countdown import Countdown
from evenkeel.rewards.verifiers.reasoning_gym.entries import MISSING, is_installed
from evenkeel.rewards.verifiers.reasoning_gym.guard import objection

THRESHOLD = 0.999  # scorers add floats; below it they pay for parts

_SOURCE = Path(__file__).with_name("inside_sandbox.py").read_text(encoding="utf-8")
_PUZZLE24 = Countdown(use_all=True)


@dataclass(frozen=True)
class ReasoningGym(BatchVerifier):
    """Score 1 if the task's own scorer gives its full score to the answer, else 0: partial scores do not count.

    The answer is the one ``<answer>`` block that ends the completion after the last ``</think>``. The scorer runs in
    the sandbox, one process per answer, and gets only answers of at most 20,000 characters that cannot be programs
    (`reasoning_gym.guard`). Cut off at a limit: 0, and ``killed``. ``puzzle24`` is scored by `countdown`: the library's
    scorer does not check which numbers were given. An answer to ``knights_knaves`` may have only the words of the
    entry's own; our `knights_knaves` scores such puzzles by their statements and reads more forms of answers.

    The reference is a mapping with ``task``, ``entry`` and ``config`` as `reasoning_gym_rows` writes them; ``entry``
    may be any JSON text with ``question``, ``answer`` and ``metadata``. Unscored: another form, an unknown task, an
    entry that its scorer cannot use.

    Attributes:
        cpu_seconds: for scoring one answer.
        isolation: of the sandbox, see `evenkeel.rewards.isolation.sandbox`.
    """

    cpu_seconds: Seconds = 10.0
    isolation: Isolation = "landlock_seccomp"

    def __post_init__(self) -> None:
        """Check that the library is installed."""
        if not is_installed():
            raise ValueError(MISSING)

    def judge_all(self, completions: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Score a batch, as many answers in parallel as the sandbox has slots."""
        limits = Limits(cpu_seconds=self.cpu_seconds, wall_seconds=5 * self.cpu_seconds + 10)
        verdicts: list[Verdict] = []
        jobs: dict[int, tuple[str, Job]] = {}
        for row, (completion, reference) in enumerate(zip(completions, references, strict=True)):
            block = answer_block(completion)
            try:
                fields, gold = _read_reference(reference)
                verdict = _without_scorer(block, fields["task"], *gold)
            except ValueError as error:
                verdict = Verdict(None, None, str(error))
            if verdict is None:
                nonce = secrets.token_hex(16)
                request = json.dumps({"nonce": nonce, **fields, "answer": block.text}).encode()
                jobs[row] = nonce, Job(_SOURCE, request, limits)
            verdicts.append(verdict or Verdict(None, block.text, ""))
        sandbox = shared_sandbox(self.isolation, ("reasoning_gym",))
        runs = sandbox.run_all(job for _, job in jobs.values())
        for (row, (nonce, _)), run in zip(jobs.items(), runs, strict=True):
            verdicts[row] = replace(_verdict(run, nonce), answer=verdicts[row].answer, seconds=run.seconds)
        return verdicts

    def gold_completion(self, reference: Any) -> str | None:
        """The entry's answer; ``None`` if it is not a text: the scorer then checks without one."""
        try:
            answer = _read_reference(reference)[1][0]
        except ValueError:
            return None
        return f"<think>so</think><answer>{answer}</answer>" if isinstance(answer, str) else None


def _read_reference(reference: Any) -> tuple[dict[str, str], tuple[Any, Any]]:
    """Texts of task, config and entry, the entry's answer and metadata; ``ValueError`` if parts are missing."""
    try:
        fields = {"task": reference["task"], "config": reference.get("config") or "{}", "entry": reference["entry"]}
        read = json.loads(fields["entry"])
        gold = read["answer"], read["metadata"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{reference!r:.80} is not task, config and entry of reasoning_gym: {error!r:.80}") from error
    if not all(isinstance(text, str) for text in fields.values()):
        raise ValueError(f"{reference!r:.80}: task and config are texts")
    return fields, gold


def _without_scorer(block: Extraction, task: str, answer: Any, metadata: Any) -> Verdict | None:
    """The verdict without a scorer; ``None`` if one is needed."""
    if not block.text:
        return Verdict(0.0, block.text, block.problem or "the answer is blank")
    if problem := objection(task, block.text, answer):
        return Verdict(0.0, block.text, problem)
    if task == "puzzle24":
        return _PUZZLE24(f"<answer>{block.text}</answer>", {"numbers": metadata.get("numbers"), "target": 24})
    return None


def _verdict(run: Run, nonce: str) -> Verdict:
    if run.status in ("failed_to_start", "starved"):
        return Verdict(None, None, f"the sandbox failed: {run.status}: {run.problem}")
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
    right = found["score"] >= THRESHOLD
    return Verdict(float(right), None, found.get("why") or f"the scorer gives {found['score']:.3g}, and only 1 counts")
