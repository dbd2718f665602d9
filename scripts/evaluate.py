"""Answer the held-out rows of a YAML file with a checkpoint, judge the answers, and say how sure the numbers are.

    python scripts/evaluate.py runs/quickstart/checkpoint-25 configs/quickstart.yaml evaluation.samples=8
    python scripts/evaluate.py Qwen/Qwen2.5-3B-Instruct configs/evaluation/math500.yaml
    accelerate launch --config_file configs/accelerate/ddp.yaml scripts/evaluate.py CHECKPOINT CONFIG

CONFIG is a file of configs/evaluation/ or any run's: its data.test, rewards and evaluation, and of trl: what generates.
vLLM generates where it is installed and there is a CUDA device, else transformers.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewards import GENERATORS, VerifierError, build_verifier, reward_functions
from rewards.references import UnusableReferenceError, check_rewards
from rewards.verifier import Verifier
from trainer.evaluation import EvaluationResult
from trainer.run.config import ConfigError, RunConfig, evaluation_arguments, load_config
from trainer.run.data import DataError, load_rows
from trainer.run.directory import CHECKPOINT, fresh_directory
from trainer.run.tokenizer import TokenizerError, load_tokenizer
from trainer.step.compatibility import PreflightError


class CheckpointError(ValueError):
    """A folder that is no checkpoint."""


REFUSALS = (
    CheckpointError,
    ConfigError,
    DataError,
    PreflightError,
    TokenizerError,
    UnusableReferenceError,
    VerifierError,
)
"""What a user can put right: shown as its message alone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 evaluated, 2 refused."""
    arguments = parse_arguments(argv)
    try:
        evaluate(arguments.checkpoint, arguments.config, arguments.overrides, arguments.output)
    except REFUSALS as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("checkpoint", help="folder of a checkpoint or an adapter, or a hub id")
    parser.add_argument("config", help="YAML file with the held-out rows and their verifiers")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    parser.add_argument("--output", metavar="DIRECTORY", help="else runs/evaluations/<config>-<checkpoint>")
    return parser.parse_intermixed_args(argv)


def evaluate(checkpoint: str, config_path: str, overrides: Sequence[str], output: str | None) -> None:
    """Check, generate, judge, write and print."""
    check_checkpoint(Path(checkpoint))
    policy = f"model.name_or_path={json.dumps(checkpoint)}"
    config = load_config(config_path, [*overrides, policy], evaluation_only=True)
    verifiers = {reward.label: build_verifier(reward.verifier) for reward in config.rewards}
    rows = load_held_out(config, verifiers, Path(config_path).resolve().parent)
    tokenizer, prefilled = load_tokenizer(config)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

    args = evaluation_arguments(config, output or f"runs/evaluations/{config.name}-{Path(checkpoint).name}")
    folder = claimed_directory(args)
    functions = reward_functions(verifiers, tasks=config.reward_tasks, prefilled_thought=prefilled)
    trainer = build_trainer(config, args, rows, functions, tokenizer)
    if trainer.accelerator.is_main_process:
        engine = "vLLM" if args.use_vllm else "transformers"
        print(f"{checkpoint}, generating with {engine} on {args.world_size} × {args.device.type}", flush=True)
    trainer.evaluate()
    if trainer.accelerator.is_main_process:
        config.save_resolved(folder / "config.yaml")
        write_and_print(folder, checkpoint, config, args, trainer.newest_evaluations)


def check_checkpoint(folder: Path) -> None:
    """Refuse the folder of a whole run: which of its checkpoints is meant is not ours to choose."""
    found = (path for path in folder.glob("checkpoint-*") if CHECKPOINT.fullmatch(path.name))
    inside = sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))
    if inside and not (folder / "config.json").exists():
        raise CheckpointError(
            f"{folder} is the directory of a run with {len(inside)} checkpoints. Name one of them: "
            f"{', '.join(str(path) for path in inside)}."
        )


def load_held_out(config: RunConfig, verifiers: dict[str, Verifier], base_dir: Path) -> dict[str, Any]:
    """The held-out sets by name, without the rows that no verifier can use: at most ``data.max_unusable`` in each."""
    held_out = {}
    for name, source in config.data.test_sources.items():
        rows = load_rows(source, generators=GENERATORS, system_prompt=config.data.system_prompt, base_dir=base_dir)
        row_tasks = rows["task"] if "task" in rows.column_names else None
        usable = check_rewards(
            verifiers,
            config.reward_tasks,
            rows["reference"],
            row_tasks,
            f"data.test, {name}",
            max_unusable=config.data.max_unusable,
        )
        held_out[name] = rows if len(usable) == len(rows) else rows.select(usable)
    return held_out


def claimed_directory(args: Any) -> Path:
    """A directory that no other evaluation writes to, the same on all processes."""
    from accelerate.utils import broadcast_object_list

    chosen: list[Any] = [fresh_directory(args.output_dir) if args.process_index == 0 else None]
    (folder,) = broadcast_object_list(chosen)
    args.output_dir = str(folder)
    return Path(folder)


def build_trainer(config: RunConfig, args: Any, rows: dict[str, Any], functions: Any, tokenizer: Any) -> Any:
    """The trainer around the checkpoint, at the step that it was saved at."""
    from transformers import PrinterCallback, ProgressCallback
    from transformers.utils.logging import disable_progress_bar

    from trainer import RLVRTrainer
    from trainer.run.callbacks import EvaluationProgress

    disable_progress_bar()  # of loading
    trainer = RLVRTrainer(
        model=load_policy(config, args),
        reward_funcs=functions,
        args=args,
        train_dataset=next(iter(rows.values())),  # TRL wants one; nothing is trained
        eval_dataset=rows,
        processing_class=tokenizer,
        evaluation_seed=config.run_seed,
        decodings=config.evaluation.decodings,
    )
    for noisy in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(noisy)
    trainer.add_callback(EvaluationProgress())
    state = Path(config.model.name_or_path) / "trainer_state.json"
    trainer.state.global_step = json.loads(state.read_text())["global_step"] if state.exists() else 0
    return trainer


def load_policy(config: RunConfig, args: Any) -> Any:
    """What TRL takes as the model: the checkpoint's name, or an adapter merged into the model that it belongs to."""
    name = config.model.name_or_path
    if not (Path(name) / "adapter_config.json").exists():
        return name
    from peft import AutoPeftModelForCausalLM

    loading = {**(args.model_init_kwargs or {}), "trust_remote_code": config.model.trust_remote_code}
    return AutoPeftModelForCausalLM.from_pretrained(name, **loading).merge_and_unload()


def write_and_print(
    folder: Path, checkpoint: str, config: RunConfig, args: Any, results: Sequence[EvaluationResult]
) -> None:
    """A parquet file of completions and their numbers for each set, ``summary.json``, and the table on the terminal."""
    names = ("use_vllm", "top_p", "top_k", "min_p", "repetition_penalty", "max_completion_length")
    for result in results:
        path = result.write(folder)
        print(f"\n{result}\n  {path}")
    summary = {
        "checkpoint": checkpoint,
        "config": config.name,
        "seed": config.run_seed,
        "generation": {name: getattr(args, name) for name in names},
        "datasets": {result.dataset: result.summary() for result in results},
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(f"  {folder / 'summary.json'}")


if __name__ == "__main__":
    sys.exit(main())
