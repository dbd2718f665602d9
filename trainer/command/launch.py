"""Train on several processes: accelerate launch, with the ranks' own exit status and without the launcher's traceback.

    evenkeel launch --cpu --num_processes 2 quickstart num_processes=2
    evenkeel launch --config_file accelerate/zero3 knights_knaves/grpo_7b trl.learning_rate=1e-6 --resume auto

Options of accelerate launch come before RUN (`accelerate launch --help` lists them), arguments of evenkeel train after
it. A script may take RUN's place, as in accelerate launch.

Exit status: that of the first rank that did not end with 0, see evenkeel train; 130 if the launcher itself was stopped,
and its ranks saved a checkpoint or said that they could not.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence

from evenkeel.trainer.command import RUN_FILE, command_line, refused_in_words
from evenkeel.trainer.run.config.shipped import named_file


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    if not given or given[0] in ("-h", "--help"):
        parser().print_help()
        return 0 if given else 2
    print(f"Launching {shlex.join(given)}", file=sys.stderr, flush=True)
    from evenkeel.trainer.run.launcher import launched

    return launched(given)


def parser() -> argparse.ArgumentParser:
    """The command line, but for accelerate's options."""
    command = command_line(__name__, __doc__)
    command.usage = f"{command.prog} [options of accelerate launch] RUN [key=value ...] [options of evenkeel train]"
    command.add_argument("config", type=named_file, metavar="RUN", help=RUN_FILE)
    return command
