"""Compare what strategies do to the gradient, on the same rollouts at the same weights, before a run is paid for.

    evenkeel gradients quickstart --strategies all     # samples 16 batches from its policy
    evenkeel gradients runs/quickstart --strategies rloo,adv_reweight,adv_reweight+lopti
    evenkeel gradients runs/quickstart@25 seed=1 --figures

A run's directory: the first batches that it recorded (logging.rollouts: all), at its first weights or those of
model.name_or_path=DIRECTORY. A configuration: batches sampled from its policy. RUN@STEP: sampled from that checkpoint.
Prints a table; gradients.json also holds the cosines between all strategies. Gradients of more than 262,144 parameters
are projected at random.

--figures: figures 1 (a–f) and 3 of arXiv 2505.12929 instead, as a table, figures.json and figures.svg. Each strategy
makes one plain SGD step a batch and pass on a copy of the policy, by all tokens and by single quarters of π_old.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pydantic_core import to_json

from evenkeel.trainer.command import OVERRIDES, command_line, positive, refused_in_words
from evenkeel.trainer.run.branch import checkpoint_at
from evenkeel.trainer.run.config.shipped import named_path
from evenkeel.trainer.run.libraries import load_libraries
from evenkeel.trainer.run.record.files import CONFIG

OF_THE_PAPER = "grpo,adv_reweight,lopti,adv_reweight+lopti"


@refused_in_words
def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 2 refused."""
    command = parser()
    arguments = command.parse_args(argv)
    if arguments.learning_rate and not arguments.figures:
        command.error("--learning-rate is that of the steps of --figures")
    source: Path = arguments.source
    overrides = arguments.overrides
    folder = arguments.to
    if "@" in source.name and not source.exists():
        weights = checkpoint_at(str(source))
        source = weights.parent / CONFIG
        overrides = [*overrides, "branch_of=null", f"model.name_or_path={weights}", "model.revision=null"]
        folder = folder or weights.with_name(f"gradients-{weights.name}")
    is_run = source.is_dir()
    path = source / CONFIG if is_run else source
    load_libraries(path, overrides)
    import torch
    from transformers import AutoModelForCausalLM

    from evenkeel.trainer.lab.gradients.bench import Bench, bench
    from evenkeel.trainer.lab.gradients.figures import Figures, figures
    from evenkeel.trainer.lab.gradients.sources import recipe_of, recorded_batches, sampled_batches
    from evenkeel.trainer.lab.gradients.strategies import named_strategies
    from evenkeel.trainer.lab.gradients.table import figures_table, panels_of, strategy_table
    from evenkeel.trainer.lab.reports.figures import joint_figure
    from evenkeel.trainer.lab.reports.tables import markdown_table
    from evenkeel.trainer.run.experiment import Experiment
    from evenkeel.trainer.run.tokenizer import folder_fault

    experiment = Experiment.of_file(path, overrides)
    model = experiment.config.model
    if fault := folder_fault(model.name_or_path):
        raise fault
    names, most = (OF_THE_PAPER, 8) if arguments.figures else ("all", 16)
    strategies = named_strategies(arguments.strategies or names)
    most = arguments.batches or most
    batches = recorded_batches(source, most) if is_run else sampled_batches(path, overrides, most)
    policy = AutoModelForCausalLM.from_pretrained(
        model.name_or_path, dtype=torch.float32, revision=model.revision, trust_remote_code=model.trust_remote_code
    )
    measured = batches, policy, recipe_of(experiment, arguments.learning_rate), strategies
    folder = folder or (source if is_run else Path("runs") / "gradients" / experiment.config.name)
    folder.mkdir(parents=True, exist_ok=True)
    found: Bench | Figures
    if arguments.figures:
        found = figures(*measured)
        table, file = figures_table(found), folder / "figures.json"
        picture = joint_figure("figures", panels_of(found), "quarter of π_old")
        (folder / "figures.svg").write_text(picture)
    else:
        found = bench(*measured)
        table, file = strategy_table(found), folder / "gradients.json"
    print(markdown_table(table))
    for name, reason in found.absent.items():
        print(f"Not replayed: {name}: {reason}")
    file.write_bytes(to_json(found, indent=2, inf_nan_mode="null"))
    print(f"{found.groups} prompts of {found.batches} batches\n{file}")
    return 0


def parser() -> argparse.ArgumentParser:
    command = command_line(__name__, __doc__)
    command.add_argument(
        "source", type=named_path, metavar="RUN|RUN@STEP|CONFIG", help="a run, its checkpoint or a YAML file"
    )
    command.add_argument("overrides", nargs="*", metavar="key=value", help=OVERRIDES)
    command.add_argument("--strategies", help=f"a,b+c or all; default: all, of --figures {OF_THE_PAPER}")
    command.add_argument("--batches", type=positive(int), help="most rollout batches; default: 16, of --figures 8")
    command.add_argument("--figures", action="store_true", help="figures 1 and 3 of arXiv 2505.12929")
    command.add_argument("--learning-rate", type=positive(float), help="of --figures; default: the run's own")
    command.add_argument("--to", type=Path, metavar="DIRECTORY", help="for gradients.json or figures.json")
    return command
