"""A checkpoint's answers to held-out rows: generated, scored, counted, written."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.evaluation.result import mean_accuracies
from evenkeel.trainer.run.config import RunConfig, evaluation_arguments
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.export.policy import adapted
from evenkeel.trainer.run.record.checkpoints import checkpoints_of, fault_of, step_of
from evenkeel.trainer.run.record.directory import check_is_run, fresh_directory
from evenkeel.trainer.run.record.files import CONFIG, TRAINER_STATE, StateRecord, read_record


def evaluate(
    checkpoint: str, config_path: str, overrides: Sequence[str], output: str | None, last: int | None = None
) -> None:
    """Check, generate, score, write and print: ``config.yaml``, two files for each held-out set, ``means.json``.

    Args:
        checkpoint: folder of a checkpoint or an adapter, or a hub id; with ``last`` the directory of a run.
        output: directory to write to; by default ``runs/evaluations/<config>-<checkpoint>``. See `fresh_directory`.
        last: how many of the run's newest good checkpoints are evaluated.
    """
    names = [checkpoint]
    if last is not None:
        check_is_run(Path(checkpoint))
        names = _last_of(Path(checkpoint), last)
    policy = f"model.name_or_path={json.dumps(names[0])}"
    experiment = Experiment.of_file(config_path, [*overrides, policy], evaluation_only=True)
    config = experiment.config
    _ = experiment.held_out, experiment.tokenizer  # refused before there is a directory
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from accelerate.utils import broadcast_object_list

    default = f"runs/evaluations/{config.name}-{Path(checkpoint).name}"
    args = evaluation_arguments(config, output or default)
    # a directory that no other evaluation writes to, the same on all processes
    chosen: list[Any] = [fresh_directory(args.output_dir) if args.process_index == 0 else None]
    (folder,) = broadcast_object_list(chosen)
    args.output_dir = str(folder)
    trainer = evaluation_trainer(experiment, args)
    is_main, results = trainer.accelerator.is_main_process, []
    if is_main:
        engine = "vLLM" if args.use_vllm else "transformers"
        devices = f"{args.world_size} × {args.device.type}"
        print(f"{checkpoint}, generating with {engine} on {devices}", flush=True)
        config.save_resolved(folder / CONFIG)
    for name in names:
        if name != names[0]:
            exchange_policy(trainer, config, name)
        trainer.evaluate()
        newest = trainer.parts.held_out.newest
        results += newest
        for result in newest if is_main else ():
            print(f"\n{result}", flush=True)
            print(f"  {result.write(folder)}", flush=True)
    if is_main and len(results) > 1:
        means = mean_accuracies(results)
        means.to_json(folder / "means.json", orient="index", indent=2)
        print(f"\nMeans\n{means.round(3)}")


def _last_of(run: Path, count: int) -> list[str]:
    """The ``count`` newest good checkpoints of a run, oldest first."""
    good = [str(each) for each in checkpoints_of(run) if not fault_of(each)]
    if count > len(good):
        raise Refusal(f"--last {count}: {run} has {len(good)} whole checkpoints.")
    return good[:count][::-1]


def exchange_policy(trainer: Any, config: RunConfig, checkpoint: str) -> None:
    """Put another checkpoint of the run in the place of the trainer's."""
    policy, model = _policy(config, checkpoint), trainer.model
    if isinstance(policy, str):
        policy = model.from_pretrained(policy, dtype=model.dtype)
    model.load_state_dict(policy.state_dict())
    # by which TRL sees that vLLM holds other weights
    trainer.state.global_step = step_of(Path(checkpoint))


def evaluation_trainer(experiment: Experiment, args: Any) -> Any:
    """A trainer for the checkpoint, at the step at which it was saved."""
    from transformers import PrinterCallback

    from evenkeel.trainer import RLVRTrainer
    from evenkeel.trainer.step.options import Evaluation, Speed

    config = experiment.config
    trainer = RLVRTrainer(
        model=_policy(config, config.model.name_or_path),
        reward_funcs=experiment.reward_functions,
        args=args,
        train_dataset=next(iter(experiment.held_out.values())),  # TRL wants one; nothing is trained
        eval_dataset=experiment.held_out,
        processing_class=experiment.tokenizer,
        speed=Speed(generation=None),
        evaluation=Evaluation(config.run_seed, config.evaluation.decodings),
        **experiment.environment_arguments,
    )
    trainer.remove_callback(PrinterCallback)
    state = Path(config.model.name_or_path) / TRAINER_STATE
    trainer.state.global_step = read_record(state, StateRecord)["global_step"] if state.exists() else 0
    for function in experiment.reward_functions:
        function.trainer_state = trainer.state
    return trainer


def _policy(config: RunConfig, name: str) -> Any:
    """The model for TRL: the checkpoint's name, or an adapter merged into the model that it names."""
    if not (Path(name) / "adapter_config.json").exists():
        return name
    from peft import PeftConfig

    base = PeftConfig.from_pretrained(name).base_model_name_or_path
    return adapted(config, base, name).merge_and_unload()
