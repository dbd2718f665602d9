"""Train a policy as a YAML file says, evaluate it before and after on held-out rows, and leave a summary.

    python scripts/train.py configs/quickstart.yaml
    python scripts/train.py configs/quickstart.yaml seed=1 trl.learning_rate=3e-4 algorithm.advantage=rloo
    accelerate launch --config_file configs/accelerate/zero3.yaml scripts/train.py configs/knights_knaves/grpo_7b.yaml
    python scripts/train.py configs/quickstart.yaml --resume
    python scripts/train.py --rerun runs/quickstart

Everything that can be found wrong is found before the model is loaded, and said without a traceback (exit status 2).
"""

import argparse
import os
import resource
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewards import GENERATORS, VerifierError, build_verifier, reward_functions
from rewards.references import UnusableReferenceError, check_rewards
from rewards.verifier import Verifier
from trainer.algorithms.registry import PartError
from trainer.algorithms.strategies import Strategies, build_strategies
from trainer.run.config import ConfigError, RunConfig, batch_plan, grpo_config, load_config, lora_config
from trainer.run.data import DataError, check_rows_enough, load_mixture
from trainer.run.directory import (
    Accuracy,
    ResumeError,
    check_same_run,
    draw_reward_curve,
    evaluation_at,
    fresh_directory,
    is_trained,
    last_checkpoint,
    write_summary,
)
from trainer.run.manifest import (
    RerunError,
    check_same_run_again,
    data_fingerprint,
    differences,
    read_manifest,
    write_manifest,
)
from trainer.run.tokenizer import TokenizerError, load_tokenizer
from trainer.step.compatibility import (
    PreflightError,
    check_combination,
    check_evaluation,
    check_save_steps,
    optimizer_steps_per_block,
)

ACCURACY = "verifier/accuracy"


class LaunchError(ValueError):
    """What was started is not what the run needs: other processes, or W&B without a key."""


REFUSALS = (
    ConfigError,
    DataError,
    LaunchError,
    PartError,
    PreflightError,
    RerunError,
    ResumeError,
    TokenizerError,
    UnusableReferenceError,
    VerifierError,
)
"""What a user can put right: shown as its message alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 trained to the end, 2 refused, 130 stopped on request with a checkpoint."""
    arguments = parse_arguments(argv)
    try:
        if arguments.rerun is None:
            return train(arguments.config, arguments.overrides, arguments.resume)
        return train(str(arguments.rerun / "config.yaml"), [], None, repeated=arguments.rerun)
    except REFUSALS as refusal:
        rank = f"[rank {os.environ['RANK']}] " if int(os.environ.get("WORLD_SIZE", "1")) > 1 else ""
        print(f"\n{rank}{refusal}", file=sys.stderr)
        return 2


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("config", nargs="?", help="YAML file of the run")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="DIRECTORY",
        help="go on from the newest checkpoint of this run, or of DIRECTORY",
    )
    parser.add_argument(
        "--rerun", type=Path, metavar="RUN", help="repeat the run of a directory: its settings, data and processes"
    )
    arguments = parser.parse_intermixed_args(argv)
    if (arguments.config is None) == (arguments.rerun is None):
        parser.error("name one YAML file to run, or one run directory to repeat with --rerun")
    if arguments.rerun is not None and arguments.resume is not None:
        parser.error("--rerun repeats a run from its beginning and --resume continues one: give one of the two")
    return arguments


def train(config_path: str, overrides: Sequence[str], resume: str | None, repeated: Path | None = None) -> int:
    """Check, evaluate, train, evaluate, summarise; ``repeated`` is the run of which this is another."""
    recorded = None if repeated is None else read_manifest(repeated)
    config = load_config(config_path, overrides)
    verifiers = {reward.label: build_verifier(reward.verifier) for reward in config.rewards}
    strategies = build_strategies(**config.algorithm.strategies)
    rows = load_data(config, verifiers, Path(config_path).resolve().parent)
    fingerprints = {part: data_fingerprint(dataset) for part, dataset in rows.items()}
    if repeated is not None and recorded is not None:
        check_same_run_again(repeated, recorded, config, fingerprints, int(os.environ.get("WORLD_SIZE", "1")))
    prepare_logging(config)

    args = grpo_config(config, world_size=int(os.environ.get("WORLD_SIZE", "1")))
    check_launch(config, args, strategies, rows)
    tokenizer, prefilled = load_tokenizer(config)
    run, checkpoint = choose_directory(config, args, resume)
    trained = checkpoint is not None and is_trained(checkpoint, args.max_steps)
    if trained and (run / "summary.json").exists():
        print(f"{run} is finished: nothing is left to train. Its summary is {run / 'summary.md'}.")
        return 0
    if args.process_index == 0 and checkpoint is None:
        write_manifest(run, config, args.world_size, fingerprints)
        for line in [] if recorded is None else differences(recorded, read_manifest(run)):
            print(f"Not as in {repeated}: {line}", flush=True)
    trainer = build_trainer(config, args, rows, verifiers, tokenizer, prefilled)
    if trained and checkpoint is not None:  # stopped between the last checkpoint and the summary
        from transformers import TrainerState

        trainer.state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
        if trainer.accelerator.is_main_process:
            report(trainer, config, run, ACCURACY, seconds=0.0)
        return 0
    return run_trainer(trainer, config, run, checkpoint, resume_command=shlex.join([config_path, *overrides]))


def load_data(config: RunConfig, verifiers: dict[str, Verifier], base_dir: Path) -> dict[str, Any]:
    """Training and held-out rows, each reference tried on every verifier that will judge it.

    The rows to train on are one dataset, ``train``; each held-out set is its own, ``test.<name>``, or ``test`` alone.
    """
    sets = config.data.test_sources
    held_out = {"test" if [*sets] == ["test"] else f"test.{name}": [source] for name, source in sets.items()}
    rows = {}
    for part, sources in {"train": [*config.data.train_sources.values()], **held_out}.items():
        if not sources:
            continue
        rows[part] = load_mixture(
            sources, generators=GENERATORS, system_prompt=config.data.system_prompt, base_dir=base_dir
        )
        tasks = rows[part]["task"] if "task" in rows[part].column_names else None
        most = config.data.max_unusable if part == "train" else 0
        usable = check_rewards(
            verifiers, config.reward_tasks, rows[part]["reference"], tasks, f"data.{part}", max_unusable=most
        )
        if len(usable) < len(rows[part]):
            rows[part] = rows[part].select(usable)
    return rows


def held_out_sets(rows: dict[str, Any]) -> dict[str, Any]:
    """Of what `load_data` returns, the held-out sets by their names in the configuration."""
    return {part.removeprefix("test."): dataset for part, dataset in rows.items() if part != "train"}


def prepare_logging(config: RunConfig) -> None:
    """W&B's settings, which it reads from the environment; online without a key is refused here, not after loading."""
    os.environ.setdefault("WANDB_MODE", config.logging.wandb_mode)
    os.environ.setdefault("WANDB_PROJECT", config.logging.project)
    os.environ.setdefault("WANDB_RUN_GROUP", config.name)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if "wandb" in config.logging.report_to and os.environ["WANDB_MODE"] == "online":
        import wandb

        if not wandb.api.api_key:
            raise LaunchError(
                "logging.wandb_mode is online, but no W&B key is set, so the run would stop after loading the model. "
                "Run `wandb login`, set WANDB_API_KEY, or write wandb_mode: offline."
            )


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


def check_launch(config: RunConfig, args: Any, strategies: Strategies, rows: dict[str, Any]) -> None:
    """What depends on the number of processes: batches, passes, checkpoints."""
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if args.world_size != started:
        raise LaunchError(
            f"The launcher started {started} processes, but they form {args.world_size} groups of one: each would "
            "train alone and overwrite the others. On a CPU launch with ACCELERATE_USE_CPU=true and trl.use_cpu: true."
        )
    check_combination(args, strategies)
    check_save_steps(args, strategies.schedule.num_passes)
    check_evaluation(args, strategies.schedule.num_passes)
    check_rows_enough(len(rows["train"]), batch_plan(config, started).prompts_per_rollout)


def build_trainer(
    config: RunConfig,
    args: Any,
    rows: dict[str, Any],
    verifiers: dict[str, Verifier],
    tokenizer: Any,
    prefilled: bool,
) -> Any:
    """The trainer with its model loaded; TRL's own printing gives way to ours."""
    from transformers import PrinterCallback, ProgressCallback
    from transformers.utils.logging import disable_progress_bar

    from trainer import RLVRTrainer

    disable_progress_bar()  # of loading and saving
    trainer = RLVRTrainer(
        model=config.model.name_or_path,
        reward_funcs=reward_functions(
            verifiers,
            tasks=config.reward_tasks,
            prefilled_thought=prefilled,
        ),
        args=args,
        train_dataset=rows["train"],
        eval_dataset=held_out_sets(rows) or None,
        processing_class=tokenizer,
        peft_config=lora_config(config),
        **config.algorithm.strategies,
        evaluation_seed=config.run_seed,
        decodings=config.evaluation.decodings,
    )
    for noisy in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(noisy)
    return trainer


def run_trainer(trainer: Any, config: RunConfig, run: Path, checkpoint: Path | None, resume_command: str) -> int:
    """Evaluate, train, evaluate; write the summary and the curve."""
    from trainer.run.callbacks import (
        EvaluationFiles,
        FinalEvaluation,
        KeepBest,
        MetricsFile,
        Progress,
        Samples,
        StopAtBlockEdge,
        WandbRunConfig,
    )

    started = time.monotonic()
    is_main = trainer.accelerator.is_main_process
    accuracy = ACCURACY
    stop = StopAtBlockEdge(
        optimizer_steps_per_block(trainer.args, trainer.strategies.schedule.num_passes), trainer.any_rank
    )
    trainer.add_callback(MetricsFile(run / "metrics.jsonl"))
    trainer.add_callback(Progress(accuracy))
    trainer.add_callback(
        Samples(trainer.newest_samples, config.logging.samples_every_steps, config.logging.num_samples)
    )
    trainer.add_callback(stop)
    if config.evaluation.after and trainer.eval_dataset is not None:
        trainer.add_callback(FinalEvaluation())
    trainer.add_callback(EvaluationFiles(run / "evaluations", lambda: trainer.newest_evaluations))
    if config.evaluation.keep_best is not None:
        trainer.add_callback(KeepBest())
    if "wandb" in config.logging.report_to and config.logging.wandb_mode != "disabled":
        trainer.add_callback(WandbRunConfig(config.model_dump()))
    if is_main:
        print(f"Run directory: {run}" + (f", resumed from {checkpoint.name}" if checkpoint else ""), flush=True)

    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if stop.stopped:
        if is_main:
            print(f"Stopped at step {trainer.state.global_step} with a checkpoint. To go on, with the same launcher:")
            print(f"  scripts/train.py {resume_command} --resume {run}")
        return 130
    if is_main:
        report(trainer, config, run, accuracy, time.monotonic() - started)
    return 0


def report(trainer: Any, config: RunConfig, run: Path, accuracy: str, seconds: float) -> None:
    """``summary.json``, ``summary.md`` and ``reward_curve.png``, and the table on the terminal."""
    before, after = (evaluation_at(run, step, f"eval_{accuracy}") for step in (0, trainer.state.global_step))
    count = sum(len(rows) for rows in (trainer.eval_dataset or {}).values())
    rewards = [entry["reward"] for entry in trainer.state.log_history if entry.get("reward") is not None]
    write_summary(
        run,
        {
            "name": config.name,
            "seed": config.run_seed,
            **trainer.strategies.names,
            "held_out_rows": count,
            "accuracy_before": before,
            "accuracy_after": after,
            "accuracy_gain": None if before is None or after is None else after - before,
            "best_metric": trainer.state.best_metric,
            "best_checkpoint": trainer.state.best_model_checkpoint,
            "reward_first": rewards[0] if rewards else None,
            "reward_last": rewards[-1] if rewards else None,
            "optimizer_steps": trainer.state.global_step,
            "tokens_seen": trainer.state.num_input_tokens_seen,
            "wall_seconds": seconds,
            "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        },
    )
    draw_reward_curve(run, accuracy)
    print(f"\n{config.name}, seed {config.run_seed}: {trainer.state.global_step} optimizer steps in {seconds:.0f} s")
    for label, value in (("before", before), ("after", after)):
        if value is not None:
            print(f"  held-out accuracy {label:<6}  {Accuracy(value, count)}   ({count} rows)")
    for name in ("summary.md", "reward_curve.png", f"checkpoint-{trainer.state.global_step}"):
        if (run / name).exists():
            print(f"  {run / name}")


if __name__ == "__main__":
    sys.exit(main())
