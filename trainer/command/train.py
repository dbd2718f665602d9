"""Train a policy as a YAML file says, evaluate it before and after on held-out rows, and leave a summary.

    evenkeel train quickstart
    evenkeel train quickstart seed=1 trl.learning_rate=3e-4 algorithm.advantage=rloo
    evenkeel launch --config_file accelerate/zero3 knights_knaves/grpo_7b
    evenkeel train quickstart --resume auto
    evenkeel train --rerun runs/quickstart
    evenkeel train --list-strategies            # what `algorithm:` can name; --list-strategies markdown

Everything that can be found wrong is found before the model is loaded, and said without a traceback.

Exit status: 0 trained to the end, or nothing was left to train; 1 failed; 2 refused: something is to be put right;
130 stopped on request with a new checkpoint; 143 stopped without one, by SIGTERM while loading
or by a second Ctrl-C; 128 + n ended by signal n: 137 by SIGKILL, mostly because memory ran out, 139 and 134 by a crash
of a library. After every status but 0 and 2 the same command with --resume auto starts the run or goes on. accelerate
launch and torchrun turn every status but 0 into 1; evenkeel launch, which takes their place, keeps it.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # before torch: of DDP's own default it warns at every start

from evenkeel.errors import Refusal
from evenkeel.trainer.command import RUN_FILE, command_line, strategies
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.launch import train
from evenkeel.trainer.run.library_errors import library_errors_in_words
from evenkeel.trainer.run.processes import (
    FAILED,
    REFUSED,
    STOPPED_WITHOUT_CHECKPOINT,
    end_with_launcher,
    exit_after_peer_failure,
    is_lost_connection,
    say,
    stoppable_while_loading,
)
from evenkeel.trainer.run.record.files import CONFIG
from evenkeel.trainer.run.signs_of_life import SIGNS
from evenkeel.trainer.step.guards import FaultError, is_full


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    arguments = parse_arguments(argv)
    if arguments.list_strategies is not None:
        return strategies.main([arguments.list_strategies])
    end_with_launcher()
    try:
        with (
            stoppable_while_loading(),
            SIGNS.running(),
            library_errors_in_words(lambda: SIGNS.under_way() or "Reading the run's file", lambda: SIGNS.has_stepped),
        ):
            if arguments.rerun is None:
                return train(
                    arguments.config,
                    arguments.overrides,
                    resume=arguments.resume,
                    accept_changes=arguments.accept_changes,
                    log_callback=_doctor,
                )
            return train(str(arguments.rerun / CONFIG), [], repeated=arguments.rerun, log_callback=_doctor)
    except Refusal as refusal:
        say(str(refusal))
        return REFUSED
    except FaultError as fault:
        if str(fault):
            say(str(fault), of_one=fault.of_one_rank)
        return FAILED
    except OSError as error:
        if not is_full(error):
            raise
        say(f"The run ended because its disk cannot be written any more: {error}. When it can: --resume auto.")
        return FAILED
    except RuntimeError as error:
        if not is_lost_connection(error):
            raise
        return exit_after_peer_failure(error)
    except KeyboardInterrupt:
        say("Stopped at once, without a new checkpoint. To start or go on: --resume auto.", of_all=True)
        return STOPPED_WITHOUT_CHECKPOINT


def _doctor(counts: Mapping[str, int], say: Callable[[str], None]) -> Any:
    from evenkeel.trainer.lab.doctor.callback import Doctor  # imports transformers

    return Doctor(counts, say)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = command_line(__name__, __doc__)
    command.add_argument("config", type=named_file, nargs="?", metavar="RUN", help=RUN_FILE)
    command.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    command.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="auto|DIRECTORY",
        help="go on with the newest run of this file, or with DIRECTORY; auto starts it where there is none",
    )
    command.add_argument(
        "--accept-changes",
        action="store_true",
        help="with --resume: go on although the rows, the model or the code of your own parts have changed",
    )
    command.add_argument(
        "--rerun", type=Path, metavar="RUN", help="repeat the run of a directory: its settings, data and processes"
    )
    command.add_argument(
        "--list-strategies",
        nargs="?",
        const="plain",
        choices=strategies.LISTINGS,
        help="print every built-in strategy with its source and evidence (or the signals that one may name), and end",
    )
    return command


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    command = parser()
    arguments = command.parse_intermixed_args(argv)
    if swallowed := _swallowed(arguments):
        command.error(swallowed)
    if arguments.list_strategies is not None:
        if arguments.config is not None or arguments.rerun is not None or arguments.resume is not None:
            command.error("--list-strategies runs nothing: give no file and no run with it")
        return arguments
    if (arguments.config is None) == (arguments.rerun is None):
        command.error("name one YAML file to run, or one run directory to repeat with --rerun")
    if arguments.rerun is not None and arguments.resume is not None:
        command.error("--rerun repeats a run from its beginning and --resume continues one: give one of the two")
    if arguments.accept_changes and arguments.resume is None:
        command.error("--accept-changes says how a run goes on: give --resume with it")
    return arguments


def _swallowed(arguments: argparse.Namespace) -> str | None:
    """What is said where --resume or --rerun took an argument that was meant otherwise, or one is of no use to it."""
    given = [word for word in (arguments.config, *arguments.overrides) if word is not None]
    taken, rerun = arguments.resume or "", arguments.rerun
    if taken.endswith((".yaml", ".yml")):
        line = " ".join(["evenkeel train", taken, *given, "--resume"])
        return f"--resume took {taken} for the directory to go on with, and it is a run's file. Write: {line}"
    if "=" in taken and not Path(taken).exists():
        line = " ".join(["evenkeel train", *given, taken, "--resume"])
        return f"--resume took {taken} for the directory to go on with, and it is a setting. Write: {line}"
    if rerun is not None and (given or rerun.suffix in (".yaml", ".yml")):
        run = rerun.parent if rerun.suffix else rerun
        line = " ".join(["evenkeel train", str(run / CONFIG), *(word for word in given if "=" in word)])
        return (
            "--rerun takes a run's directory and repeats the run as it was, without other settings. To repeat it "
            f"write: evenkeel train --rerun {run}; for other settings: {line}"
        )
    return None
