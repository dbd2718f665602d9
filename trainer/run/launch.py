"""One training run from its YAML file to its summary: checked, placed, trained, reported."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from evenkeel.rewards.registry import Refusal
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.check.check import checked_before_start
from evenkeel.trainer.run.check.context import lines_named
from evenkeel.trainer.run.check.report import brief_lines
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.environments import kept_on_resume
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.launched_as import check_engine_possible, check_engine_runs
from evenkeel.trainer.run.library_errors import library_errors_in_words
from evenkeel.trainer.run.preflight import (
    check_launch,
    check_wandb_answers,
    force_cpu,
    prepare_logging,
    started_processes,
)
from evenkeel.trainer.run.processes import stoppable_after_training
from evenkeel.trainer.run.record.directory import directories_of, forget_fresh_directory, is_trained
from evenkeel.trainer.run.record.files import SUMMARY_TEXT, TRAINER_STATE
from evenkeel.trainer.run.record.manifest import (
    check_same_run_again,
    data_fingerprint,
    differences,
    read_manifest,
    record_changes,
    write_manifest,
)
from evenkeel.trainer.run.record.placement import place
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.run_time import begin_with
from evenkeel.trainer.run.signs_of_life import SIGNS
from evenkeel.trainer.run.summary import report
from evenkeel.trainer.run.training import LogCallback, run_trainer
from evenkeel.trainer.run.wandb_end import finish_wandb


def train(
    config_path: str,
    overrides: Sequence[str],
    *,
    resume: str | None = None,
    accept_changes: bool = False,
    repeated: Path | None = None,
    log_callback: LogCallback | None = None,
) -> int:
    """Check, evaluate, train, evaluate, summarise.

    Args:
        resume: a run's directory, or "" for the newest, to resume from its newest checkpoint; ``None`` starts a run.
        accept_changes: resume although rows, model or the user's own code have changed.
        repeated: the run of which this is another.
        log_callback: makes a callback that reads the log as it grows.

    Returns:
        The exit status: 0 trained to the end, 130 stopped on request with a checkpoint.
    """
    recorded = None if repeated is None else read_manifest(repeated)
    experiment = Experiment.of_file(config_path, overrides, processes=started_processes())
    config = experiment.config
    written = layered(Path(config_path), overrides)
    with lines_named("environment", written):
        _ = experiment.environments
    with lines_named("rewards", written):
        _ = experiment.verifiers
    with lines_named("algorithm", written):
        _ = experiment.strategies  # all of them quickly refused, and rows take time
    SIGNS.begins(lambda: "Loading the data and trying the verifiers on them")
    with lines_named("data", written):
        fingerprints = {part: data_fingerprint(dataset) for part, dataset in experiment.rows.items()}
    if repeated is not None and recorded is not None:
        check_same_run_again(repeated, recorded, config, fingerprints, started_processes())
    prepare_logging(config)
    with lines_named("machine", written):
        check_engine_possible(config)
    force_cpu(config)
    with lines_named("trl", written):
        args = experiment.args
    check_launch(experiment, written)
    with lines_named("model", written):
        _ = experiment.tokenizer
    SIGNS.begins(lambda: "Checking the run")
    # a refused run leaves no directory:
    is_new = resume is None or not directories_of(config.output_dir)
    with lines_named("branch_of", written):
        branch = branch_of(experiment, fingerprints["train"], args.world_size) if is_new else None
    checked = checked_before_start(experiment, written) if is_new else None
    placement = place(config, args, resume, fingerprints, accept_changes=accept_changes)
    run, checkpoint = placement.run, placement.checkpoint
    trained = checkpoint is not None and is_trained(checkpoint, args.max_steps)
    if placement.finished or (trained and RunRecord(run).is_finished):
        if args.process_index == 0:
            print(f"{run} is finished: nothing is left to train. Its summary is {run / SUMMARY_TEXT}.")
        return 0
    # a finished run needs no room for another checkpoint
    checked = checked or (None if trained else checked_before_start(experiment, written))
    for line in brief_lines(checked) if checked and args.process_index == 0 else ():
        print(line, flush=True)
    begins = checkpoint is None
    if args.process_index == 0 and begins:
        write_manifest(run, config, args.world_size, fingerprints)
        for line in [] if recorded is None else differences(recorded, read_manifest(run)):
            print(f"Not as in {repeated}: {line}", flush=True)
        begin_with(run, placement.restarts)
    if args.process_index == 0 and checkpoint is not None and placement.changed:
        record_changes(run, checkpoint, placement.now, placement.changed)
    try:
        if begins and (branch := branch or branch_of(experiment, fingerprints["train"], args.world_size)) is not None:
            checkpoint, args.eval_on_start = run / f"checkpoint-{branch.step}", False
            if args.process_index == 0:
                branch.begin(run)
        if args.process_index == 0 and checkpoint is not None and (kept := kept_on_resume(experiment.environments)):
            print(kept, flush=True)
        if args.process_index == 0:
            check_wandb_answers(config)
        SIGNS.begins(lambda: "Loading the model")
        with library_errors_in_words(SIGNS.under_way), lines_named("algorithm", written):
            trainer = experiment.trainer
        check_engine_runs(trainer.accelerator)
    except Refusal:
        if args.process_index == 0 and begins:
            forget_fresh_directory(run)
        raise
    if trained and checkpoint is not None:  # the run was stopped between its last checkpoint and its summary
        from transformers import TrainerState

        stoppable_after_training(checkpoint)
        trainer.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE))
        if trainer.accelerator.is_main_process:
            report(trainer, config, run, RunRecord(run).seconds)
        return 0
    try:
        command = shlex.join([config_path, *overrides])
        return run_trainer(trainer, config, run, checkpoint, command, begins=begins, log_callback=log_callback)
    finally:
        finish_wandb()
