"""Continue a run in several ways from one of its checkpoints, and compare them: variants × parents from one YAML file.

    evenkeel branch runs/base@80 variants.yaml
    evenkeel branch runs/base@80 runs/base-2@80 runs/base-3@80 variants.yaml

The file is that of a sweep without `config:` and `seeds:`, which are the parents' own:

    baseline: grpo
    variants:
      grpo: {}                        # changes nothing: it is the rest of its parent, bit for bit
      lopti: {algorithm.update_schedule: lopti}

Weights, optimizer, random states and place in the data are the checkpoint's, the settings are each variant's own. All
use common random numbers, and the parent must have used them too. Three parents or more, of different seeds, give a
verdict. Started again after a kill, it continues. A sweep file may name its parents itself: `from: [runs/base@80]`.
"""

import argparse
from collections.abc import Sequence

from evenkeel.trainer.command import command_line, refused_in_words
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.libraries import load_libraries


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 all cells finished, 1 some failed, 2 refused, 130 stopped on request."""
    arguments = parser().parse_args(argv)
    load_libraries(arguments.file)
    from evenkeel.trainer.lab.sweeps import commands

    status = commands.run(arguments.file, arguments.parents)
    return status or commands.report(arguments.file, arguments.parents)


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("parents", nargs="+", metavar="RUN@STEP", help="a run's directory and a checkpoint's step")
    command.add_argument("file", type=named_path, metavar="VARIANTS", help="YAML file of the variants")
    return command
