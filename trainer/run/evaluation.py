"""A checkpoint's answers to held-out rows: generated, scored, counted, written."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig, evaluation_arguments
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.export.policy import adapted
from evenkeel.trainer.run.record.directory import fresh_directory
from evenkeel.trainer.run.record.files import CONFIG, TRAINER_STATE, StateRecord, read_record


def evaluate(checkpoint: str, config_path: str, overrides: Sequence[str], output: str | None) -> None:
    """Check, generate, score, write and print: ``config.yaml``, and two files for each held-out set.

    Args:
        checkpoint: folder of a checkpoint or an adapter, or a hub id.
        output: directory to write to; by default ``runs/evaluations/<config>-<checkpoint>``. See `fresh_directory`.
    """
    policy = f"model.name_or_path={json.dumps(checkpoint)}"
    experiment = Experiment.of_file(config_path, [*overrides, policy], evaluation_only=True)
    config = experiment.config
    _ = experiment.held_out, experiment.tokenizer  # refused before there is a directory
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from accelerate.utils import broadcast_object_list

    args = evaluation_arguments(config, output or f"runs/evaluations/{config.name}-{Path(checkpoint).name}")
    # a directory that no other evaluation writes to, the same on all processes
    chosen: list[Any] = [fresh_directory(args.output_dir) if args.process_index == 0 else None]
    (folder,) = broadcast_object_list(chosen)
    args.output_dir = str(folder)
    trainer = evaluation_trainer(experiment, args)
    if trainer.accelerator.is_main_process:
        engine = "vLLM" if args.use_vllm else "transformers"
        print(f"{checkpoint}, generating with {engine} on {args.world_size} × {args.device.type}", flush=True)
    trainer.evaluate()
    if not trainer.accelerator.is_main_process:
        return
    config.save_resolved(folder / CONFIG)
    for result in trainer.parts.held_out.newest:
        path = result.write(folder)
        print(f"\n{result}\n  {path}")


def evaluation_trainer(experiment: Experiment, args: Any) -> Any:
    """A trainer for the checkpoint, at the step at which it was saved."""
    from transformers import PrinterCallback

    from evenkeel.trainer import RLVRTrainer
    from evenkeel.trainer.step.options import Evaluation, Speed

    config = experiment.config
    trainer = RLVRTrainer(
        model=_policy(config),
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


def _policy(config: RunConfig) -> Any:
    """The model for TRL: the checkpoint's name, or an adapter merged into the model that it names."""
    name = config.model.name_or_path
    if not (Path(name) / "adapter_config.json").exists():
        return name
    from peft import PeftConfig

    base = PeftConfig.from_pretrained(name).base_model_name_or_path
    return adapted(config, base, name).merge_and_unload()
