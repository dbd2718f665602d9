"""Rehearsal of a run on the CPU: the real trainer, the model cut to two layers, one rollout batch.

Tokenizer, rows, verifiers, environments and strategies are the run's own. What TRL, transformers, peft, accelerate or a
part refuses is found here, in seconds, before the model's weights are loaded. Half of the verdicts, at random, are
flipped: a model with random weights is never right, and without a right answer nothing is trained.

Not rehearsed, since a CPU or two layers cannot show it: vLLM, DeepSpeed, FSDP, weights in 16 or 4 bits, 8-bit
optimizers, the layers of an adapter, and long completions.
"""

import copy
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.check.model import model_class
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.record.checkpoints import checkpoints_of

_TOKENS, _HEAD = 8, 16
"""Tokens of a completion; width of an attention head."""
_PROMPTS = 2
"""Prompts of a rollout batch."""
_ON_A_GPU = (
    *("vllm_", "use_vllm", "deepspeed", "fsdp", "fp16", "tf32", "hub_", "push_to_hub", "dataloader_", "ddp_"),
    *("torch_compile", "use_liger_kernel", "optim_target_modules", "generation_batch_size"),
    "use_transformers_",  # continuous batching: minutes on a CPU
)
"""Prefixes of the arguments of ``trl:`` that a rehearsal leaves out."""
_OF_LAYERS = ("layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern")
"""Keys of ``model.lora`` that depend on the number of layers."""


def rehearse(experiment: Experiment, settings: Any) -> bool:
    """Generate, train, save; resume from that checkpoint, train again, evaluate. ``False``: the model cannot be cut.

    Raises whatever the trainer, a library or a part raises.

    Args:
        experiment: with its parts built; they are used unchanged.
        settings: the model's configuration.
    """
    with tempfile.TemporaryDirectory(prefix="evenkeel-rehearsal-") as folder, quietly():
        model = save_small_model(settings, Path(folder) / "model")
        if model is None:
            return False
        config = rehearsed_config(experiment, model, Path(folder) / "run")
        steps = int(config.trl["max_steps"])
        for attempt in (1, 2):
            trl = {**config.trl, "max_steps": attempt * steps}
            trainer = _small(experiment, config.model_copy(update={"trl": trl})).trainer
            trainer.train(resume_from_checkpoint=None if attempt == 1 else str(checkpoints_of(Path(folder) / "run")[0]))
        if config.data.test is not None:
            trainer.evaluate()
    return True


def _small(experiment: Experiment, config: RunConfig) -> Experiment:
    small = replace(experiment, config=config, processes=1)
    sampler = experiment.strategies.prompt_sampler
    kinds = ("task", getattr(sampler and sampler.function, "column", ""))
    rows = {part: rows.select(_chosen(rows, 2 * _PROMPTS, kinds)) for part, rows in experiment.rows.items()}
    for name in ("verifiers", "environments", "strategies", "_tokenizer"):
        setattr(small, name, getattr(experiment, name))
    small.rows = rows
    return small


def _chosen(rows: Any, at_least: int, kinds: Iterable[str]) -> list[int]:
    """Numbers of the shortest rows for each value of the columns ``kinds``, at least so many in all where there are."""
    values = [rows[name][:] for name in kinds if name in rows.column_names]
    sizes = [len(str(prompt)) for prompt in rows["prompt"][:]]
    by_kind: dict[str, list[int]] = {}
    for row in sorted(range(len(rows)), key=sizes.__getitem__):
        by_kind.setdefault(str([each[row] for each in values]), []).append(row)
    each = -(-at_least // len(by_kind))
    return [row for found in by_kind.values() for row in found[:each]]


def rehearsed_config(experiment: Experiment, model: Path, run: Path) -> RunConfig:
    """The run's settings with a small batch of short completions, on the CPU, from ``model``, written to ``run``."""
    config, plan = experiment.config, experiment.plan
    per_step = 1 if plan.updates_per_pass > 1 else 2
    trl = {key: value for key, value in config.trl.items() if not key.startswith(_ON_A_GPU)}
    if any(part in str(trl.get("optim")) for part in ("bit", "bnb", "paged", "torchao", "apex", "npu")):
        del trl["optim"]
        trl.pop("optim_args", None)
    steps = experiment.strategies.schedule.num_passes * plan.num_iterations * _PROMPTS // per_step
    trl |= {
        "use_cpu": True,
        "max_completion_length": min(_TOKENS, trl.get("max_completion_length", _TOKENS)),
        "per_device_train_batch_size": plan.num_generations,
        "gradient_accumulation_steps": per_step,
        "steps_per_generation": _PROMPTS,
        "max_steps": steps,
        "logging_steps": 1,
        "save_steps": steps,
        "disable_tqdm": True,
    }
    if trl.get("save_strategy") in (None, "epoch", "no"):
        trl["save_strategy"] = "steps"
    attention = config.model.attn_implementation
    lora = config.model.lora
    if lora is not None:
        lora = {key: value for key, value in lora.items() if key not in _OF_LAYERS}
        if any(map(str.isdigit, str(lora.get("target_modules")))):
            del lora["target_modules"]
    changed: dict[str, Any] = {
        "name_or_path": str(model),
        "revision": None,
        "dtype": "float32",
        "attn_implementation": attention if attention in ("sdpa", "eager") else None,
        "lora": lora,
        "quantization": None,
    }
    tossed = {"false_positive": 0.5, "false_negative": 0.5}
    return config.model_copy(
        update={
            "output_dir": str(run),
            "num_processes": None,
            "branch_of": None,
            "vllm": None,
            "trl": trl,
            "model": config.model.model_copy(update=changed),
            "rewards": [each.model_copy(update={"noise": each.noise or tossed}) for each in config.rewards],
            "algorithm": config.algorithm.model_copy(
                update={"prompts_per_rollout": None, "sequences_per_update": None}
            ),
            "evaluation": config.evaluation.model_copy(
                update={"batch_size": 8, "every_steps": config.evaluation.every_steps and steps}
            ),
            "logging": config.logging.model_copy(update={"report_to": "none"}),
            "stopping": config.stopping.model_copy(update={"stall_minutes": None}),
        }
    )


def save_small_model(settings: Any, folder: Path) -> Path | None:
    """Save a model of two layers with random weights and the settings' own vocabulary.

    It is narrow where a narrow one runs. ``None`` where none runs: its class is its own code, or needs all layers.
    """
    import torch

    if (kind := model_class(settings)) is None:
        return None
    for cut in (_narrow, _two_layers):
        try:
            with torch.random.fork_rng([]):
                torch.manual_seed(0)
                model = kind._from_config(cut(copy.deepcopy(settings)), dtype=torch.float32)
                model(input_ids=torch.ones(1, 3, dtype=torch.long))
        except Exception:  # noqa: BLE001 — some models' settings are inconsistent in another size
            continue
        model.save_pretrained(folder)
        return folder
    return None


def _two_layers(settings: Any) -> Any:
    text = settings.get_text_config()
    layers = text.num_hidden_layers
    for name, value in vars(text).items():
        if isinstance(value, list) and len(value) == layers > 2:
            setattr(text, name, [value[0], next((each for each in value if each != value[0]), value[1])])
    text.num_hidden_layers = min(2, layers)
    return settings


def _narrow(settings: Any) -> Any:
    text = _two_layers(settings).get_text_config()
    heads = text.num_attention_heads
    width = heads * _HEAD
    if width < text.hidden_size:
        if getattr(text, "head_dim", None):
            text.head_dim = _HEAD
        text.hidden_size = width
        for name in ("intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size"):
            if size := getattr(text, name, None):
                setattr(text, name, min(size, 2 * width))
    return settings


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress output, trackers, and the launcher's environment variables."""
    import transformers

    before, verbosity = dict(os.environ), transformers.logging.get_verbosity()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers.logging.set_verbosity(logging.CRITICAL)
        for name in [name for name in before if name.startswith(("ACCELERATE_", "FSDP_"))]:
            del os.environ[name]
        os.environ["WANDB_MODE"] = "disabled"
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            transformers.logging.set_verbosity(verbosity)
