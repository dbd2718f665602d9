"""Train a policy as a YAML file says, evaluate it before and after on held-out rows, and leave a summary.

    evenkeel train quickstart
    evenkeel train quickstart seed=1 trl.learning_rate=3e-4 algorithm.advantage=rloo
    evenkeel launch --config_file accelerate/zero3 knights_knaves/grpo_7b
    evenkeel train quickstart --resume auto
    evenkeel train --rerun runs/quickstart
    evenkeel train --model configs/tiny_policy/countdown --data rows.jsonl --reward exact_match --max_steps 2

The last writes the run file that it is. Arguments of GRPOConfig, and names of verl and OpenRLHF, may be options.

Exit status: 0 trained to the end, or nothing was left to train; 1 failed; 2 refused: something must be fixed;
130 stopped on request with a new checkpoint; 143 stopped without one, by SIGTERM while loading or by a second Ctrl-C;
128 + n ended by signal n (137: usually out of memory). After every status but 0 and 2 the same command with --resume
auto starts the run or goes on. accelerate launch and torchrun turn every status but 0 into 1; evenkeel launch keeps it.
"""

import argparse
import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from evenkeel.errors import COMMAND_LINE, Refusal
from evenkeel.trainer.command import OVERRIDES, RUN_FILE, SETTING, command_line
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.libraries import load_libraries
from evenkeel.trainer.run.library_errors import library_errors_in_words
from evenkeel.trainer.run.processes import (
    FAILED,
    REFUSED,
    STOPPED_WITHOUT_CHECKPOINT,
    end_with_launcher,
    exit_after_peer_failure,
    is_full,
    is_lost_connection,
    say,
    stoppable_outside_training,
)
from evenkeel.trainer.run.record.files import CONFIG


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parse_arguments(argv)
    end_with_launcher()
    try:
        with (
            stoppable_outside_training(),
            HEARTBEAT.running(),
            library_errors_in_words(
                lambda: HEARTBEAT.stage() or "Reading the run's file", lambda: HEARTBEAT.has_stepped
            ),
        ):
            file = arguments.config if arguments.rerun is None else str(arguments.rerun / CONFIG)
            if not file:
                file, arguments.overrides = _written(arguments.overrides), []
            load_libraries(file, arguments.overrides)
            from evenkeel.trainer.lab.doctor.callback import Doctor
            from evenkeel.trainer.run.launch import train

            return train(
                file,
                arguments.overrides,
                resume=arguments.resume,
                accept_changes=arguments.accept_changes,
                repeated=arguments.rerun,
                log_callback=Doctor,
                report_page=_report_page,
            )
    except Refusal as refusal:
        say(str(refusal))
        return REFUSED
    except Exception as error:
        from evenkeel.trainer.step.guards import FaultError

        if isinstance(error, FaultError):
            if str(error):
                say(str(error), of_one=error.of_one_rank)
            return FAILED
        if is_full(error):  # torch and safetensors raise errors of their own
            say(f"The disk cannot be written: {error}. To go on: --resume auto.", of_one=True)
            return FAILED
        if not is_lost_connection(error):
            raise
        return exit_after_peer_failure(error)
    except KeyboardInterrupt:
        say("Stopped without a new checkpoint. To start or go on: --resume auto.", of_all=True)
        return STOPPED_WITHOUT_CHECKPOINT


def _written(settings: Sequence[str]) -> str:
    """The run file that ``settings`` are, written into this folder if it is not there; refused first if it is wrong."""
    from torch import accelerator

    from evenkeel.rewards.parts import VERIFIER_KIND
    from evenkeel.trainer.run.config.layers import all_over
    from evenkeel.trainer.run.config.loading import config_of, local_path
    from evenkeel.trainer.run.config.yaml_document import Node, write

    tree = all_over(Node({}, COMMAND_LINE), settings)
    model, data = (tree.at(keys) for keys in (("model", "name_or_path"), ("data", "train", "path")))
    if model is None or data is None or tree.child("rewards") is None:
        raise Refusal("Name a run file; or write --model, --data and --reward.")
    here = ["trl.use_cpu=true", "trl.bf16=false"] * (not accelerator.is_available())
    here += ["data.train.split=train"] * (local_path(str(data.value), Path()) is None)  # TRL's default
    tree = all_over(Node({}, COMMAND_LINE), [*here, *settings])
    name = tree.child("name") or Node(f"{Path(str(model.value)).name}-{Path(str(data.value)).stem}", COMMAND_LINE)
    for reward in config_of(tree, Path(f"{name.value}.yaml")).rewards:
        VERIFIER_KIND.find(reward.verifier)
    for number in itertools.count(1):
        file = Path(f"{name.value}{f'-{number}' * (number > 1)}.yaml")
        text = f"# evenkeel train {file}\n\n{write(tree.plain())}"
        if not file.exists():
            draft = file.with_name(f".{file.name}.{os.getpid()}")  # ranks write the same
            draft.write_text(text, encoding="utf-8")
            draft.replace(file)
            say(f"This run is {file}: `evenkeel train {file}` runs it again.", of_all=True)
        if file.read_bytes() == text.encode():
            return str(file)
    raise AssertionError


def _report_page(run: Path) -> Path:
    from evenkeel.trainer.lab.reports.page import write_report

    return write_report(run)[1]


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("config", type=named_file, nargs="?", metavar="RUN", help=RUN_FILE)
    command.add_argument("overrides", nargs="*", metavar="key=value", help=OVERRIDES)
    command.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="auto|DIRECTORY",
        help="go on with the newest run of this file, or DIRECTORY; auto may start it",
    )
    command.add_argument(
        "--accept-changes", action="store_true", help="resume although rows, model or own code have changed"
    )
    command.add_argument("--rerun", type=Path, metavar="RUN", help="repeat the run of a directory")
    return command


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    command = parser()
    arguments = command.parse_intermixed_args(argv)
    if arguments.config and SETTING.match(arguments.config) and not os.path.exists(arguments.config):
        arguments.config, arguments.overrides = "", [arguments.config, *arguments.overrides]
    if arguments.rerun is not None and (arguments.config is not None or arguments.resume is not None):
        command.error("--rerun repeats a run as it was, and takes nothing else")
    if arguments.rerun is None and arguments.config is None:
        command.error("name a run file, before --resume, or a run's directory by --rerun")
    if arguments.accept_changes and arguments.resume is None:
        command.error("--accept-changes needs --resume")
    return arguments
