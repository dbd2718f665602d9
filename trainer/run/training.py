"""The trainer of a run with all that watches it, and the training itself."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.library_errors import in_words
from evenkeel.trainer.run.processes import (
    FAILED,
    STOPPED,
    is_lost_connection,
    print_line,
    stoppable_after_training,
)
from evenkeel.trainer.run.record.checkpoints import step_of
from evenkeel.trainer.run.record.files import EVALUATIONS, METRICS
from evenkeel.trainer.run.record.run_time import RunTime
from evenkeel.trainer.run.schedule import optimizer_steps_per_block
from evenkeel.trainer.run.summary import ACCURACY, report
from evenkeel.trainer.run.wandb_end import finish_wandb

LogCallback = Callable[[Callable[[str], None]], Any]
"""What prints a line → a callback."""


def run_trainer(
    trainer: Any,
    config: RunConfig,
    run: Path,
    checkpoint: Path | None,
    resume_command: str,
    *,
    begins: bool,
    log_callback: LogCallback | None = None,
) -> int:
    """Evaluate, train, evaluate; write the summary and the curve. The exit status of `trainer.run.processes`.

    ``begins``: this is the first part of the run; where there is a checkpoint, of a branch.
    """
    is_main = trainer.accelerator.is_main_process
    stop, idle = _watched(trainer, config, run, checkpoint, log_callback)
    if is_main:
        words = [f"Run directory: {run}"]
        if checkpoint is not None:
            words.append(f"a branch of {config.branch_of}" if begins else f"resumed from {checkpoint.name}")
        print(", ".join(words), flush=True)

    try:
        with RunTime(run, writes=is_main) as clock:
            trainer.parts.phases.seconds_before = clock.earlier
            HEARTBEAT.enter("Starting the training")
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except Refusal:
        raise
    except Exception as error:
        if checkpoint is None or stop.has_stepped or is_lost_connection(error):
            raise
        raise Refusal(
            f"{checkpoint} cannot be loaded, although its files are as they were saved: {in_words(error)} Bring back "
            "the packages that manifest.json names, or rename it: --resume auto then takes an older one.",
            code="resume",
        ) from error
    stoppable_after_training(run / f"checkpoint-{trainer.state.global_step}")
    step = trainer.state.global_step
    if not stop.stopped and not idle.ended:
        if is_main:
            report(trainer, config, run)
        return 0
    finish_wandb()  # its output must not be the last
    if is_main and stop.stopped:
        print(f"Stopped at step {step} with a checkpoint. To resume, with the same launcher:")
        print(f"  evenkeel train {resume_command} --resume {run}")
    elif is_main:
        print_line(idle.message())
    if stop.stopped:
        return STOPPED
    return FAILED


def _watched(
    trainer: Any, config: RunConfig, run: Path, checkpoint: Path | None, log_callback: LogCallback | None
) -> tuple[Any, Any]:
    """Add the callbacks of a run to its trainer; returns those that end it: on request, or with nothing to train."""
    from evenkeel.trainer.run.callbacks import (
        CheckpointManifest,
        EvaluationFiles,
        FinalEvaluation,
        IdleBatches,
        KeepBest,
        MetricsFile,
        Progress,
        Rollouts,
        Samples,
        StallWatchdog,
        StopAtRolloutBoundary,
        WandbRunConfig,
    )

    steps_per_block = optimizer_steps_per_block(trainer.args, trainer.strategies.schedule.num_passes)
    parts = trainer.parts
    stop = StopAtRolloutBoundary(steps_per_block, parts.ranks.any)
    idle = IdleBatches(trainer._metrics, parts.checkpoint.counts, lambda: parts.faults.newest_norm, steps_per_block)
    if (minutes := config.stopping.stall_minutes) is not None:
        trainer.add_callback(StallWatchdog(run / "stalls", 60 * minutes))
    trainer.add_callback(MetricsFile(run / METRICS))
    trainer.add_callback(Progress(ACCURACY, phase=lambda: trainer.parts.phases.now))
    trainer.add_callback(Samples(trainer.newest_samples, config.logging.samples_every_steps))
    trainer.add_callback(stop)
    trainer.add_callback(idle)
    if log_callback is not None:
        trainer.add_callback(log_callback(print_line))
    if config.logging.rollouts != "off":
        trainer.add_callback(Rollouts(trainer, run, config.logging))
    if trainer.eval_dataset is not None:
        trainer.add_callback(FinalEvaluation())
    trainer.add_callback(EvaluationFiles(run / EVALUATIONS, lambda: trainer.newest_evaluations))
    if config.evaluation.keep_best is not None:
        trainer.add_callback(KeepBest())
    if "wandb" in config.logging.report_to:
        trainer.add_callback(WandbRunConfig(config.model_dump()))
    if checkpoint is not None:
        from transformers.integrations import TensorBoardCallback

        # What the interrupted part of the run wrote of later steps is replaced: they are trained, and written, again.
        for callback in trainer.callback_handler.callbacks:
            if isinstance(callback, TensorBoardCallback):
                callback._SummaryWriter = partial(callback._SummaryWriter, purge_step=step_of(checkpoint) + 1)
    # Last, after all callbacks that write into a checkpoint; it deletes old ones too, when the new one is whole.
    total_limit, trainer.args.save_total_limit = trainer.args.save_total_limit, None
    trainer.add_callback(CheckpointManifest(total_limit, trainer.accelerator.wait_for_everyone))
    return stop, idle
