"""What a run will do, and everything that is wrong with it, in under a minute and without loading the model's weights.

The run is rehearsed on the CPU: its real trainer, rows and parts, with the model's config.json cut to two layers, make
a small rollout batch, train, evaluate, save and resume. What a library refuses stands behind file, line and key. Wrong
keys are said first, and alone.

    evenkeel check quickstart
    evenkeel check knights_knaves/grpo_3b trl.learning_rate=2e-6 --processes 8 --device-memory 80
    evenkeel check quickstart --json
    evenkeel check a_strangers_run.yaml --no-code

The tokenizer and the model's config.json are read; parameters are counted on torch's meta device. Memory is an estimate
(trainer/run/check/memory.py). Of large data sets 1,000 prompts a set are tokenized, the longest by their characters
among them.

A run file names code: parts of its author's (`module:attribute`), parts that installed packages offer, and with
model.trust_remote_code the model's. What the file names is printed first, each with its file and the line that names
it; then it is imported, and tried. With --no-code none of it is imported, nothing is rehearsed, and everything else is
checked; each part that was left out has a note. Python's standard library holds no part: `os:system` is refused by its
name. A chat template is first rendered in a process with 5 s of CPU time and 1 GiB, and no pipe or device is read as a
file.

Exit status: 0 nothing stops the run (there may be warnings), 2 errors.

--json prints one object: ``config`` (the file), ``ok`` (no errors), ``problems`` (a list of ``severity``: error,
warning or note; ``key``: dotted; ``code``: the kind of mistake, a short name such as ``beyond-context``; ``text``),
``code`` (what the file names: ``name``, ``file``, ``key``, ``written``), ``plan`` (numbers, or null; the fields of
`trainer.run.check.plan.Plan`), ``possible_processes`` (on which the batch can be cut), ``prompt_tokens`` (part →
``tokenized``, ``longest``), and ``memory_estimate`` (ddp, zero1, zero2, zero3 or fsdp2 → ``peak_bytes``, ``terms`` with
``name``, ``bytes``, ``phase``).
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from evenkeel.trainer.command import RUN_FILE, command_line
from evenkeel.trainer.run.check.check import Code, checked
from evenkeel.trainer.run.check.memory import GIB
from evenkeel.trainer.run.check.report import json_report, text_report
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.processes import REFUSED


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    arguments = parser().parse_intermixed_args(argv)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    device = None if arguments.device_memory is None else round(arguments.device_memory * GIB)
    shown = sys.stderr if arguments.json else sys.stdout

    def show(code: Sequence[Code]) -> None:
        first = f"Code that the file names, which is {'not ' * arguments.no_code}run:"
        print(*([first, *code, ""] if code else []), sep="\n", end="", file=shown, flush=True)

    with redirect_stdout(sys.stderr):  # what transformers and a user's own parts print is no part of the report
        result = checked(
            arguments.config,
            arguments.overrides,
            processes=arguments.processes,
            device_bytes=device,
            runs_code=not arguments.no_code,
            on_code=show,
        )
    print((json_report if arguments.json else text_report)(result, arguments.config))
    return REFUSED if result.errors else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = command_line(__name__, __doc__)
    command.add_argument("config", type=named_file, metavar="RUN", help=RUN_FILE)
    command.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    command.add_argument(
        "--processes", type=_count, metavar="N", help="started together; default: the file's num_processes, or 1"
    )
    command.add_argument(
        "--device-memory",
        type=float,
        metavar="GIB",
        help="of the GPU that the run is meant for; default: this machine's",
    )
    command.add_argument("--no-code", action="store_true", help="import nothing that the file names; check all else")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    return command


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes; write 1 or more")
    return int(text)
