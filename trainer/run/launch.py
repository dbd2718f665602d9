"""One training run from its YAML file to its summary: checked, placed, trained, reported."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.algorithms.strategies import build_strategies
from trainer.run.config import RunConfig, grpo_config, load_config
from trainer.run.directory import (
    ResumeError,
    check_same_run,
    fresh_directory,
    is_trained,
    last_checkpoint,
)
from trainer.run.manifest import (
    RerunError,
    check_same_run_again,
    data_fingerprint,
    differences,
    read_manifest,
    write_manifest,
)
from trainer.run.preflight import check_launch, prepare_logging, started_processes
from trainer.run.rewards import Rewards
from trainer.run.rows import load_data
from trainer.run.summary import report
from trainer.run.tokenizer import load_tokenizer
from trainer.run.training import build_trainer, run_trainer


def train(
    config_path: str,
    overrides: Sequence[str],
    rewards: Rewards,
    *,
    resume: str | None = None,
    repeated: Path | None = None,
) -> int:
    """Check, evaluate, train, evaluate, summarise.

    Args:
        resume: a run's directory, or "" for the newest, to go on from its checkpoint; ``None`` starts a run.
        repeated: the run of which this is another.

    Returns:
        The exit status: 0 trained to the end, 130 stopped on request with a checkpoint.
    """
    recorded = None if repeated is None else read_manifest(repeated)
    config = load_config(config_path, overrides)
    verifiers = {reward.label: rewards.build_verifier(reward.verifier) for reward in config.rewards}
    strategies = build_strategies(**config.algorithm.strategies)
    rows = load_data(config, verifiers, rewards, Path(config_path).resolve().parent)
    fingerprints = {part: data_fingerprint(dataset) for part, dataset in rows.items()}
    if repeated is not None and recorded is not None:
        check_same_run_again(repeated, recorded, config, fingerprints, started_processes())
    prepare_logging(config)

    args = grpo_config(config, world_size=started_processes())
    check_launch(config, args, strategies, rows)
    tokenizer, prefilled = load_tokenizer(config)
    run, checkpoint = choose_directory(config, args, resume)
    trained = checkpoint is not None and is_trained(checkpoint, args.max_steps)
    if trained and (run / "summary.json").exists():
        print(f"{run} is finished: nothing is left to train. Its summary is {run / 'summary.md'}.")
        return 0
    if args.process_index == 0 and checkpoint is None:
        _record(run, config, args.world_size, fingerprints, repeated, recorded)
    functions = rewards.reward_functions(verifiers, tasks=config.reward_tasks, prefilled_thought=prefilled)
    trainer = build_trainer(config, args, rows, functions, tokenizer)
    if trained and checkpoint is not None:
        _report_late(trainer, config, run, checkpoint)
        return 0
    return run_trainer(trainer, config, run, checkpoint, resume_command=shlex.join([config_path, *overrides]))


def _record(
    run: Path,
    config: RunConfig,
    world_size: int,
    fingerprints: Mapping[str, str],
    repeated: Path | None,
    recorded: Mapping[str, Any] | None,
) -> None:
    write_manifest(run, config, world_size, fingerprints)
    for line in [] if recorded is None else differences(recorded, read_manifest(run)):
        print(f"Not as in {repeated}: {line}", flush=True)


def _report_late(trainer: Any, config: RunConfig, run: Path, checkpoint: Path) -> None:
    """The summary of a run that was stopped between its last checkpoint and its summary."""
    from transformers import TrainerState

    trainer.state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    if trainer.accelerator.is_main_process:
        report(trainer, config, run, seconds=0.0)


def choose_directory(config: RunConfig, args: Any, resume: str | None) -> tuple[Path, Path | None]:
    """The run's directory, the same on all ranks, and the checkpoint to go on from."""
    from accelerate.utils import broadcast_object_list

    chosen: list[Any] = [None]
    if args.process_index == 0:
        try:
            if resume is None:
                chosen = [(fresh_directory(config.output_dir), None)]
            else:
                checkpoint = last_checkpoint(resume or config.output_dir)
                check_same_run(config, checkpoint.parent, args.world_size)
                chosen = [(checkpoint.parent, checkpoint)]
        except (ResumeError, RerunError) as refusal:
            chosen = [refusal]
    (decision,) = broadcast_object_list(chosen)
    if isinstance(decision, Exception):
        raise decision
    run, checkpoint = decision
    args.eval_on_start = args.eval_on_start and checkpoint is None  # a resumed run was evaluated when it began
    args.output_dir = str(run)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(run / "tensorboard")
    os.environ.setdefault("WANDB_DIR", str(run))
    return run, checkpoint
