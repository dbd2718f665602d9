"""Keys that a run file does not have: arguments that another section owns, and the commonest names of other trainers.

`docs/coming_from.md` has what is written elsewhere for what, as a page.
"""

from collections.abc import Collection, Mapping
from typing import get_args

from evenkeel.trainer.run.config.trackers import TrackerName

IN_ANOTHER_SECTION = {
    "output_dir": "Write `output_dir:` at the top level.",
    "run_name": "Write `name:` at the top level.",
    "report_to": "Write `logging: {report_to: [wandb]}`.",
    "log_completions": "Write `logging: {samples_every_steps: …}`.",
    "num_completions_to_print": "Leave it out: `logging: {samples_every_steps: …}` shows two.",
    "log_completions_hub_repo": "Leave it out: completions are logged by `logging:`.",
    "reward_weights": "Write a `weight:` beside each verifier under `rewards:`.",
    "scale_rewards": "Choose an estimator: `algorithm: {advantage: grpo}` or `dr_grpo`.",
    "multi_objective_aggregation": "Choose an estimator: `algorithm: {advantage: …}`.",
    "eval_strategy": "Write `evaluation: {every_steps: …}`.",
    "eval_steps": "Write `evaluation: {every_steps: …}`.",
    "eval_on_start": "Write `evaluation: {before: true}`.",
    "do_eval": "Write `evaluation: {before: …, every_steps: …}`.",
    "eval_delay": "Write `evaluation: {every_steps: …}`.",
    "metric_for_best_model": "Write `evaluation: {keep_best: eval/test/avg@1}`.",
    "greater_is_better": "Leave it out: `evaluation: {keep_best: …}` keeps the highest.",
    "per_device_eval_batch_size": "Write `evaluation: {batch_size: …}`.",
    "num_generations_eval": "Write `evaluation:`.",
    "model_init_kwargs": "Write `model: {dtype: …, revision: …, attn_implementation: …}`.",
    "trust_remote_code": "Write `model: {trust_remote_code: true}`.",
    "resume_from_checkpoint": "Name the checkpoint on the training script's command line.",
    "remove_unused_columns": "Leave it out: verifiers need the reference column, so it is always false.",
    "hub_token": "Set the environment variable HF_TOKEN: the configuration is saved and logged, a token must not be.",
    "local_rank": "Leave it out: the launcher sets it.",
    "parallelism_config": "Write it in the accelerate configuration of the launcher.",
}
"""Argument of GRPOConfig that another section of the file decides → what to write there."""

_FOREIGN = {
    "model.name_or_path": "model_name_or_path model_name",
    "model.dtype": "torch_dtype precision",
    "model.lora": "use_peft peft_config",
    "model.lora.r": "lora_r rank",
    "model.lora.target_modules": "lora_target_modules",
    "model.quantization": "load_in_4bit",
    "data.train": "dataset dataset_name train_files",
    "data.test": "eval_dataset val_files",
    "rewards": "reward_funcs",
    "algorithm.advantage": "adv_estimator estimator",
    "algorithm.prompts_per_rollout": "rollout_batch_size",
    "algorithm.sequences_per_update": "ppo_mini_batch_size",
    "trl.learning_rate": "lr",
    "trl.per_device_train_batch_size": "batch_size",
    "trl.num_generations": "group_size rollout_n",
    "trl.max_completion_length": "max_new_tokens max_response_length",
    "trl.beta": "kl_coef",
    "trl.epsilon": "clip_ratio",
    "trl.epsilon_high": "clip_ratio_high",
    "trl.num_train_epochs": "epochs",
    "trl.num_iterations": "ppo_epochs",
    "trl.max_grad_norm": "grad_clip",
    "trl.vllm_tensor_parallel_size": "tensor_parallel_size",
}
FOREIGN = {other: key for key, others in _FOREIGN.items() for other in others.split()}
"""Name elsewhere → the dotted key that is meant."""
REMOVED: Mapping[str, str] = {
    "warmup_ratio": "Write `warmup_steps: 0.1` under `trl:` for a tenth of the steps; a whole number counts steps.",
    "max_prompt_length": "Leave it out: TRL 1.16 neither cuts nor drops long prompts, and evenkeel check names them.",
}
"""Argument of earlier versions of TRL that no other has taken the place of → what to write."""
_COLUMNS = ("prompt", "reference", "group", "question", "answer")


def advice_for(section: str, key: str, fields: Mapping[str, Collection[str]], kinds: Mapping[str, str]) -> str | None:
    """What to write for a ``key`` that its ``section`` (dotted; empty at the top) does not have.

    Args:
        fields: dotted section → its keys.
        kinds: name of a built-in strategy → its kind.
    """
    if section == "logging" and key in get_args(TrackerName):
        return f"Write `report_to: [{key}]`."
    if section.startswith("data.") and key in _COLUMNS:
        return "Columns are named in the source's columns: `columns: {prompt: …, reference: …}`."
    if key in kinds:
        return f"A strategy is chosen by its kind: `algorithm: {{{kinds[key]}: {key}}}`, or `{{name: {key}, …}}`."
    return next((_under(other, key) for other, known in fields.items() if other != section and key in known), None)


OTHERWISE = {
    "rewards": "A verifier's options are written inside it: `verifier: {{name: …, {key}: …}}`.",
    "logging": "What concerns W&B alone is said by its variables, such as WANDB_PROJECT.",
}
"""Section → what to write for a key that resembles none."""


def meant_by(section: str, key: str) -> str | None:
    """What to write for a name that other trainers, or earlier versions of TRL, have."""
    if key in REMOVED:
        return REMOVED[key]
    if key not in FOREIGN:
        return None
    place, _, name = FOREIGN[key].rpartition(".")
    return f"Did you mean {name}?" if place == section else _under(place, name)


def _under(section: str, name: str) -> str:
    return f"Write it under `{section}:` as `{name}: …`." if section else f"Write `{name}: …` at the top level."
