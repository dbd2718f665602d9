"""Answer the held-out rows of a YAML file with a checkpoint, judge the answers, and say how sure the numbers are.

    evenkeel evaluate runs/quickstart/checkpoint-25 configs/quickstart.yaml evaluation.samples=8
    evenkeel evaluate Qwen/Qwen2.5-3B-Instruct configs/evaluation/math500.yaml
    accelerate launch --config_file configs/accelerate/ddp.yaml -m evenkeel evaluate CHECKPOINT CONFIG

CONFIG is a file of configs/evaluation/ or any run's: its data.test, rewards and evaluation, and of trl: what generates.
vLLM generates where it is installed and there is a CUDA device, else transformers.
"""

import argparse
import sys
from collections.abc import Sequence

from evenkeel.rewards import Refusal
from evenkeel.trainer.run.evaluation import evaluate
from evenkeel.trainer.run.library_errors import library_errors_in_words


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 evaluated, 2 refused."""
    arguments = parse_arguments(argv)
    try:
        with library_errors_in_words(lambda: f"Evaluating {arguments.checkpoint}"):
            evaluate(arguments.checkpoint, arguments.config, arguments.overrides, arguments.output)
    except Refusal as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("checkpoint", help="folder of a checkpoint or an adapter, or a hub id")
    parser.add_argument("config", help="YAML file with the held-out rows and their verifiers")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    parser.add_argument("--output", metavar="DIRECTORY", help="else runs/evaluations/<config>-<checkpoint>")
    return parser.parse_intermixed_args(argv)
