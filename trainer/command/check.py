"""Show what a run will do and all that is wrong with it, in under a minute, without loading the model's weights.

    evenkeel check quickstart
    evenkeel check knights_knaves/grpo_3b trl.learning_rate=2e-6 --processes 8 --device-memory 80
    evenkeel check quickstart --json
    evenkeel check a_strangers_run.yaml --no-code

The run is rehearsed on the CPU: its real trainer, rows and parts, with the model's config.json cut to two layers, make
a small rollout batch, train, evaluate, save and resume. Wrong keys are shown first, and alone. Memory is an estimate.

A run file names code: its author's parts, and with model.trust_remote_code the model's. It is imported and tried. With
--no-code none of it is: a note names each part that is left out, and nothing is rehearsed.

Exit status: 0 nothing stops the run (there may be warnings), 2 errors.

--json prints one object: ``config``, ``ok``, ``problems`` (``severity``, ``key``, ``code``, ``text``), ``plan``,
``prompt_tokens`` and ``memory_estimate``.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress

from evenkeel.errors import Refusal
from evenkeel.trainer.command import OVERRIDES, RUN_FILE, command_line, positive
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.libraries import load_libraries
from evenkeel.trainer.run.processes import REFUSED


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_intermixed_args(argv)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with redirect_stdout(sys.stderr):  # what others print is not the report's
        with suppress(Refusal):  # which is a part of the report
            load_libraries(arguments.config, arguments.overrides)
        from evenkeel.trainer.run.check.check import checked
        from evenkeel.trainer.run.check.memory import GIB
        from evenkeel.trainer.run.check.report import json_report, text_report

        device = None if arguments.device_memory is None else round(arguments.device_memory * GIB)
        result = checked(
            arguments.config,
            arguments.overrides,
            processes=arguments.processes,
            device_bytes=device,
            runs_code=not arguments.no_code,
        )
    print((json_report if arguments.json else text_report)(result, arguments.config))
    return REFUSED if result.errors else 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("config", type=named_file, metavar="RUN", help=RUN_FILE)
    command.add_argument("overrides", nargs="*", metavar="key=value", help=OVERRIDES)
    command.add_argument("--processes", type=positive(int), metavar="N", help="default: the file's num_processes")
    command.add_argument(
        "--device-memory", type=positive(float), metavar="GIB", help="of the GPU; default: this machine's"
    )
    command.add_argument("--no-code", action="store_true", help="import nothing that the file names")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    return command
