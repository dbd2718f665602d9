"""Compare what strategies do to the gradient, on the same rollouts at the same weights, before a run is paid for.

    evenkeel gradients quickstart --strategies all     # samples 16 batches from its policy
    evenkeel gradients runs/quickstart --strategies rloo,adv_reweight,adv_reweight+lopti

A run's directory: the first batches that it recorded (logging.rollouts: all), at its first weights or --weights. A
configuration: batches sampled from its policy. Prints a table; gradients.json also holds the cosines between all
strategies. Gradients of more than 262,144 parameters are projected at random.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from evenkeel.trainer.command import command_line, positive, refused_in_words
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.libraries import load_libraries
from evenkeel.trainer.run.record.files import CONFIG


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 refused."""
    arguments = parser().parse_args(argv)
    source: Path = arguments.source
    is_run = source.is_dir()
    path = source / CONFIG if is_run else source
    load_libraries(path)
    import torch
    from transformers import AutoModelForCausalLM

    from evenkeel.trainer.lab.gradients.bench import bench
    from evenkeel.trainer.lab.gradients.sources import recipe_of, recorded_batches, sampled_batches
    from evenkeel.trainer.lab.gradients.strategies import named_strategies
    from evenkeel.trainer.lab.gradients.table import strategy_table
    from evenkeel.trainer.lab.reports.tables import markdown_table
    from evenkeel.trainer.run.experiment import Experiment

    experiment = Experiment.of_file(path)
    config, args = experiment.config, experiment.args
    strategies, absent = named_strategies(arguments.strategies)
    batches = recorded_batches(source, arguments.batches) if is_run else sampled_batches(path, arguments.batches)
    weights = arguments.weights or config.model.name_or_path
    code = config.model.trust_remote_code
    revision = None if arguments.weights else config.model.revision
    policy = AutoModelForCausalLM.from_pretrained(
        weights, dtype=torch.float32, revision=revision, trust_remote_code=code
    )
    loss, longest = args.loss_type, args.max_completion_length
    found = bench(batches, policy, recipe_of(experiment), strategies, loss, longest)
    found.absent.update(absent)
    print(markdown_table(strategy_table(found)))
    for name, reason in found.absent.items():
        print(f"Not replayed: {name}: {reason}")
    folder: Path = arguments.to or (source if is_run else Path("runs") / "gradients" / config.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gradients.json").write_text(json.dumps(found.as_json(), indent=2) + "\n")
    print(f"{found.groups} prompts of {found.batches} batches\n{folder / 'gradients.json'}")
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument("source", type=named_path, metavar="RUN|CONFIG", help="a run's directory or YAML file")
    command.add_argument("--strategies", default="all", help="a,b+c or all")
    command.add_argument("--batches", type=positive(int), default=16, help="most rollout batches; default: 16")
    command.add_argument("--weights", help="of the policy; default: the configuration's model")
    command.add_argument("--to", type=Path, metavar="DIRECTORY", help="for gradients.json")
    return command
