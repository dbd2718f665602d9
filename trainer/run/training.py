"""The training of a run, with its callbacks."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.callbacks.checkpoints import CheckpointManifest
from evenkeel.trainer.run.callbacks.evaluations import EvaluationFiles, FinalEvaluation, KeepBest
from evenkeel.trainer.run.callbacks.progress import Progress, Samples
from evenkeel.trainer.run.callbacks.records import MetricsFile, Rollouts
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
from evenkeel.trainer.run.callbacks.stopping import StopAtRolloutBoundary
from evenkeel.trainer.run.callbacks.weights_and_biases import RunOnWandb
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.processes import STOPPED, print_line
from evenkeel.trainer.run.record.files import EVALUATIONS, METRICS, REWARD_CURVE
from evenkeel.trainer.run.record.run_time import RunTime
from evenkeel.trainer.run.schedule import optimizer_steps_per_block
from evenkeel.trainer.run.summary import report


def run_trainer(
    trainer: Any,
    config: RunConfig,
    run: Path,
    checkpoint: Path | None,
    resume_command: str,
    *,
    begins: bool,
    log_callback: Callable[[Callable[[str], None]], Any] | None,
    report_page: Callable[[Path], Path] | None,
) -> int:
    """Evaluate, train, evaluate; write the summary and the curve. The exit status of `trainer.run.processes`.

    ``begins``: this is the first part of the run; its checkpoint, if any, is a branch's.
    """
    args, is_main = trainer.args, trainer.accelerator.is_main_process
    steps_per_block = optimizer_steps_per_block(args, trainer.strategies.schedule.num_passes)
    stop = StopAtRolloutBoundary(steps_per_block, trainer.parts.ranks.any)
    if (minutes := config.stopping.stall_minutes) is not None:
        trainer.add_callback(StallWatchdog(run / "stalls", 60 * minutes))
    trainer.add_callback(MetricsFile(run / METRICS))
    trainer.add_callback(Progress(lambda: trainer.parts.phases.now))
    trainer.add_callback(Samples(trainer._logs, config.logging.samples_every_steps))
    trainer.add_callback(stop)
    if log_callback is not None:
        trainer.add_callback(log_callback(print_line))
    if config.logging.rollouts != "off":
        trainer.add_callback(Rollouts(trainer, run, config.logging))
    if trainer.eval_dataset is not None:
        trainer.add_callback(FinalEvaluation())
    trainer.add_callback(EvaluationFiles(run / EVALUATIONS, lambda: trainer.parts.held_out.newest))
    if config.evaluation.keep_best is not None:
        trainer.add_callback(KeepBest())
    if (on_wandb := run_on_wandb(trainer, config, run)) is not None:
        trainer.add_callback(on_wandb)  # after `Rollouts`, whose rows it takes
    # Last, after all callbacks that write into a checkpoint; it deletes old ones too, when the new one is whole.
    total_limit, args.save_total_limit = args.save_total_limit, None
    trainer.add_callback(CheckpointManifest(total_limit, trainer.accelerator.wait_for_everyone))
    if is_main:
        words = [f"Run directory: {run}"]
        if checkpoint is not None:
            words.append(f"a branch of {config.branch_of}" if begins else f"resumed from {checkpoint.name}")
        print(", ".join(words), flush=True)
    with RunTime(run) if is_main else nullcontext():
        HEARTBEAT.enter("Starting the training" if checkpoint is None else f"Resuming from {checkpoint}")
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if stop.stopped:
        if is_main:
            print(f"Stopped at step {trainer.state.global_step} with a checkpoint. To resume, with the same launcher:")
            print(f"  evenkeel train {resume_command} --resume {run}", flush=True)
        return STOPPED
    if is_main:
        end_of_run(trainer, config, run, on_wandb, report_page)
    return 0


def run_on_wandb(trainer: Any, config: RunConfig, run: Path) -> RunOnWandb | None:
    """What logs the run to W&B, in place of transformers' callback; ``None`` where nothing does, or another rank."""
    logs = "wandb" in config.logging.report_to and os.environ["WANDB_MODE"] != "disabled"
    return RunOnWandb(trainer, config, run) if logs and trainer.accelerator.is_main_process else None


def end_of_run(trainer: Any, config: RunConfig, run: Path, on_wandb: Any, report_page: Any) -> None:
    """Write the summary and the curve, and give both to W&B with the page that ``report_page(run)`` writes."""
    summary, files = report(trainer, config, run), [run / REWARD_CURVE]
    if on_wandb is None:
        return
    try:
        files += [report_page(run)] if report_page else []
    except Refusal as refusal:
        print(f"W&B gets no report: {refusal}", flush=True)
    on_wandb.end(summary, files)
