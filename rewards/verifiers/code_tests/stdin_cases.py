"""Programs that read standard input: one run per case, its output compared here."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from rewards.isolation.sandbox import Limits, Sandbox
from rewards.verifiers.code_tests.answer_session import ended
from rewards.verifiers.code_tests.comparison import Comparison, output_mistake
from rewards.verifiers.code_tests.kinds import Outcome, StdinCases

# The program runs in the globals of __main__ as if it were the file. It is told its input and nothing else.
_PROGRAM = """{standard_names}
globals().update(standard_names())
sys.setrecursionlimit(RECURSION_LIMIT)
exec(compile({code!r}, "answer.py", "exec", dont_inherit=True), globals())
"""


def stdin_outcomes(
    sandbox: Sandbox, code: str, tests: StdinCases, comparison: Comparison, limits: Limits
) -> Iterator[Outcome]:
    """What each case finds, in order; a case is run when its outcome is asked for.

    The output decides, under the condition that the program ended by itself and without an exception: with an empty
    expected output, raising at once would otherwise be right.
    """
    source = _PROGRAM.format(standard_names=_standard_names(), code=code)
    for case in tests.cases:
        enough = max(limits.output_bytes, 2 * len(case.output.encode(errors="replace")) + (1 << 16))
        stdin = case.input.encode(errors="replace")
        run = sandbox.run(source, stdin=stdin, limits=replace(limits, output_bytes=enough))
        if run.status != "exited" or run.exit_code != 0:
            yield Outcome(False, f"the program {ended(run)}", run.killed, run.waited_seconds)
        elif run.truncated:
            yield Outcome(False, f"the program wrote more than {enough} bytes", waited_seconds=run.waited_seconds)
        else:
            mistake = output_mistake(case.output, run.stdout.decode(errors="replace"), comparison)
            yield Outcome(not mistake, mistake, waited_seconds=run.waited_seconds)


@cache
def _standard_names() -> str:
    return Path(__file__).with_name("inside").joinpath("standard_names.py").read_text("utf-8")
