"""Answer the held-out rows of a YAML file with a checkpoint, and score the answers, with intervals.

    evenkeel evaluate runs/quickstart/checkpoint-25 quickstart evaluation.samples=8
    evenkeel evaluate Qwen/Qwen2.5-3B-Instruct evaluation/math500
    evenkeel evaluate runs/ar_orz_7b evaluation/paper_2505_12929 --last 3
    evenkeel launch --config_file accelerate/ddp -m evenkeel evaluate CHECKPOINT CONFIG

CONFIG is a file of configs/evaluation/ or any run's: its data.test, rewards, evaluation and generation options.
vLLM generates if it is installed and there is a CUDA device, else transformers.
"""

import argparse
from collections.abc import Sequence

from evenkeel.errors import Refusal
from evenkeel.trainer.command import OVERRIDES, command_line, positive, refused_in_words
from evenkeel.trainer.run.config.shipped import named_file
from evenkeel.trainer.run.libraries import load_libraries
from evenkeel.trainer.run.library_errors import library_errors_in_words


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 evaluated, 2 refused."""
    arguments = parser().parse_intermixed_args(argv)
    if any(override.startswith("model.name_or_path=") for override in arguments.overrides):
        raise Refusal(f"model.name_or_path is {arguments.checkpoint} here. Leave it out.")
    load_libraries(arguments.config, arguments.overrides)
    from evenkeel.trainer.run.evaluation import evaluate

    with library_errors_in_words(lambda: f"Evaluating {arguments.checkpoint}"):
        evaluate(arguments.checkpoint, arguments.config, arguments.overrides, arguments.output, arguments.last)
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("checkpoint", help="folder of a checkpoint or an adapter, or a hub id")
    command.add_argument("config", type=named_file, help="YAML file with the held-out rows and their verifiers")
    command.add_argument("overrides", nargs="*", metavar="key=value", help=OVERRIDES)
    command.add_argument(
        "--last", type=positive(int), metavar="N", help="of a run's directory: its last N checkpoints, and means"
    )
    command.add_argument("--output", metavar="DIRECTORY", help="default: runs/evaluations/<config>-<checkpoint>")
    return command
