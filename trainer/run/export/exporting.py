"""One export: the policy loaded, merged, written aside, read back, compared, and moved into place."""

import gc
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from evenkeel.errors import Refusal
from evenkeel.trainer.run.export.agreement import greedy_answers, largest_gap
from evenkeel.trainer.run.export.model_card import model_card
from evenkeel.trainer.run.export.policy import load_policy, merged
from evenkeel.trainer.run.export.source import Source
from evenkeel.trainer.run.library_errors import in_words
from evenkeel.trainer.run.record.files import MANIFEST, CheckpointRecord, read_record, write_json

TRAINING_CONFIG, TRAINING_MANIFEST = "training_config.yaml", "training_manifest.json"
SAME_WEIGHTS_GAP = 1e-3
"""Largest difference of a log-probability if no weight was rounded: merging an adapter reorders sums."""
_UNPUBLISHED = ("command", "git_diff", "environment", "packages")
_PACKAGES = ("torch", "trl", "transformers", "accelerate", "peft", "deepspeed", "vllm", "datasets", "tokenizers")


def export(source: Source, to: Path, *, dtype: str | None = None, base: str | None = None) -> float:
    """Write the policy of ``source`` to the new folder ``to``, for plain transformers, vLLM and others to load.

    The folder holds safetensors, the tokenizer with the chat template that was trained with, a generation
    configuration that samples as training did, a model card, and the run's configuration and record. It appears when
    all of it is there and the policy read back from it has answered as the one in the run does. Returns the largest
    difference of a log-probability of an answer.

    Args:
        dtype: of the written weights; ``None`` = that of the checkpoint.
        base: where the base model of an adapter lies now.

    Raises:
        Refusal: ``to`` exists, the weights cannot be put together, or what was written answers differently.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    trusted = source.run.config.model.trust_remote_code
    if to.exists():
        raise Refusal(f"{to} exists already, and nothing is overwritten. Name a folder that does not exist.")
    try:
        policy = load_policy(source, base)
        tokenizer = AutoTokenizer.from_pretrained(source.checkpoint, trust_remote_code=trusted)
    except Refusal:
        raise
    except Exception as error:  # libraries raise anything at files that are not what they wrote
        raise Refusal(f"{source.checkpoint} cannot be loaded: {in_words(error)}") from error
    trained_dtype = str(policy.dtype).removeprefix("torch.")
    generation = generation_config(source, policy, tokenizer)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = policy.to(device)
    answers = greedy_answers(policy, tokenizer, source.run.config, generation)

    draft = to.with_name(f"{to.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    policy = merged(policy, dtype)
    policy.generation_config = generation
    policy.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    del policy
    gc.collect()

    # read back as any user of transformers loads it
    again = AutoModelForCausalLM.from_pretrained(draft, dtype="auto", trust_remote_code=trusted).to(device).eval()
    gap = largest_gap(answers, again)
    written_dtype = str(again.dtype).removeprefix("torch.")
    # between precisions answers may differ
    same_weights = trained_dtype == written_dtype and (not source.is_adapter or written_dtype == "float32")
    if (same_weights and gap > SAME_WEIGHTS_GAP) or math.isnan(gap):
        raise Refusal(f"{draft} does not answer as the policy of the run: log-probabilities differ by {gap:.1e}.")
    record = training_record(source)
    write_json(draft / TRAINING_MANIFEST, record)
    source.run.config.save_resolved(draft / TRAINING_CONFIG)
    (draft / "README.md").write_text(model_card(source, record, gap, written_dtype), encoding="utf-8")
    draft.rename(to)
    return gap


def generation_config(source: Source, policy: Any, tokenizer: Any) -> Any:
    """Sampling as in training, with every token that ended a completion there.

    Written out in full, as transformers' own defaults (``top_k: 50``) are not those of training.
    """
    from transformers import GenerationConfig

    argument = source.run.config.argument
    ends = policy.generation_config.eos_token_id
    ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
    if tokenizer.eos_token_id not in ends:
        ends = [tokenizer.eos_token_id, *ends]
    return GenerationConfig(
        do_sample=True,
        temperature=argument("temperature"),
        top_p=argument("top_p"),
        top_k=argument("top_k"),
        min_p=argument("min_p"),
        repetition_penalty=argument("repetition_penalty"),
        max_new_tokens=argument("max_completion_length"),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=ends,
        pad_token_id=tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id,
    )


def training_record(source: Source) -> dict[str, Any]:
    """The part of the run's manifest that may be published, with the checkpoint's step and the SHA-256 of its files."""
    kept: dict[str, Any] = {key: value for key, value in source.record.items() if key not in _UNPUBLISHED}
    packages: Mapping[str, str] = source.record.get("packages", {})
    manifest = source.checkpoint / MANIFEST
    files = read_record(manifest, CheckpointRecord)["files"] if manifest.is_file() else {}
    return {
        "run": source.run.config.name,
        "optimizer_steps": source.step,
        **kept,
        "code_was_changed": bool(source.record.get("git_diff")),
        "packages": {name: packages[name] for name in _PACKAGES if name in packages},
        "checkpoint_sha256": {name: record["sha256"] for name, record in files.items()},
    }
