"""One training run from its YAML file to its summary: checked, placed, trained, reported."""

import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerState

from evenkeel.errors import Refusal
from evenkeel.trainer.run import training
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.callbacks.weights_and_biases import finish_wandb
from evenkeel.trainer.run.check.check import checked_before_start
from evenkeel.trainer.run.check.report import brief_lines
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.library_errors import library_errors_in_words, located
from evenkeel.trainer.run.preflight import (
    check_launched,
    check_wandb_answers,
    follow_run_file,
    prepare_logging,
    schedule_checks,
    started_processes,
)
from evenkeel.trainer.run.record.files import SUMMARY_TEXT, TRAINER_STATE
from evenkeel.trainer.run.record.manifest import (
    check_same_run_again,
    data_fingerprint,
    differences,
    read_manifest,
    record_changes,
    record_choices,
    starting_point,
    write_manifest,
)
from evenkeel.trainer.run.record.placement import place


def train(
    config_path: str,
    overrides: Sequence[str],
    *,
    resume: str | None = None,
    accept_changes: bool = False,
    repeated: Path | None = None,
    log_callback: Callable[[Callable[[str], None]], Any] | None = None,
    report_page: Callable[[Path], Path] | None = None,
) -> int:
    """Check, evaluate, train, evaluate, summarize.

    Args:
        resume: a run's directory, `placement.NEWEST` or `placement.AUTO`; ``None`` starts a run.
        accept_changes: resume although rows, model or the user's own code have changed.
        repeated: the directory of the run to repeat.
        log_callback: takes a function that prints a line; returns a callback that reads the log as it grows.
        report_page: takes a finished run's directory and writes its report; returns the page, which W&B gets.

    Returns:
        The exit status: 0 trained to the end, 130 stopped on request with a checkpoint.
    """
    recorded = None if repeated is None else read_manifest(repeated)
    experiment = Experiment.of_file(config_path, overrides, processes=started_processes())
    config = experiment.config
    written = layered(Path(config_path), overrides)
    for topic, part in (("environment", "environments"), ("rewards", "verifiers"), ("algorithm", "strategies")):
        with located(written, topic):
            getattr(experiment, part)  # refused before rows are loaded, which takes time
    HEARTBEAT.enter("Loading the data and trying the verifiers on them")
    with located(written, "data"):
        fingerprints = {part: data_fingerprint(dataset) for part, dataset in experiment.rows.items()}
    prepare_logging(config)
    launchers_precision = follow_run_file(config)
    with located(written, "trl"):
        args = experiment.args
    is_main = args.process_index == 0
    if is_main and launchers_precision not in ("", "no", args.mixed_precision):
        print(f"The launcher's precision {launchers_precision} is not taken: the run file's is {args.mixed_precision}.")
    check_launched(args, experiment.processes)
    for topic, check in schedule_checks(experiment):
        with located(written, topic):
            check()
    with located(written, "model"):
        _ = experiment.tokenizer
    HEARTBEAT.enter("Checking the run")
    start = starting_point(config, fingerprints) if is_main or recorded is not None else {}
    if repeated is not None and recorded is not None:
        check_same_run_again(repeated, recorded, start, started_processes())
    placement = place(config, args, resume, start, accept_changes=accept_changes)
    run, checkpoint = placement.run, placement.checkpoint
    if placement.is_finished:
        if is_main:
            print(f"{run} is finished: nothing is left to train. Its summary is {run / SUMMARY_TEXT}.")
        return 0
    begins = checkpoint is None
    experiment.recorded_choices = placement.choices
    try:
        branch = None
        if begins:
            with located(written, "branch_of"):
                branch = branch_of(experiment, fingerprints["train"])
        checked = None if placement.is_trained else checked_before_start(experiment, written)
        if is_main:
            for line in brief_lines(checked) if checked else ():
                print(line, flush=True)
            if begins:
                write_manifest(run, config, args.world_size, start)
            for line in [] if recorded is None else differences(recorded, read_manifest(run)):
                print(f"Not as in {repeated}: {line}", flush=True)
            if placement.changed and checkpoint is not None:
                record_changes(run, checkpoint, start, placement.changed)
        if branch is not None:
            checkpoint, args.eval_on_start = run / f"checkpoint-{branch.step}", False
            if is_main:
                branch.begin(run)
        if is_main:
            check_wandb_answers(config)
        HEARTBEAT.enter("Loading the model")
        with library_errors_in_words(HEARTBEAT.stage), located(written, "algorithm"):
            trainer = experiment.trainer
        if is_main and (other := record_choices(run, experiment.choices)):
            print(f"Different from when the run began, so that numbers may differ: {', '.join(other)}", flush=True)
    except Refusal:
        if is_main and begins:
            shutil.rmtree(run)  # this start has made it
        raise
    try:
        if placement.is_trained and checkpoint is not None:  # stopped before its summary was written
            trainer.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE))
            if trainer.accelerator.is_main_process:
                training.end_of_run(trainer, config, run, training.run_on_wandb(trainer, config, run), report_page)
            return 0
        return training.run_trainer(
            trainer,
            config,
            run,
            checkpoint,
            shlex.join([config_path, *overrides]),
            begins=begins,
            log_callback=log_callback,
            report_page=report_page,
        )
    finally:
        finish_wandb()
        placement.lock = None  # free for the next start in this process
