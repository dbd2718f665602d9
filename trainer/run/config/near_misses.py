"""Keys as papers and other frameworks call them, and keys of another section: what to write instead of them."""

from collections.abc import Collection, Mapping

from trainer.run.config.trackers import TRACKERS

MEANT = {
    "model": {"name": "name_or_path", "path": "name_or_path", "model_name": "name_or_path", "id": "name_or_path"}
    | dict.fromkeys(("torch_dtype", "precision"), "dtype")
    | dict.fromkeys(("peft", "peft_config", "adapter", "lora_config"), "lora"),
    "model.lora": {"rank": "r", "lora_r": "r", "lora_rank": "r", "alpha": "lora_alpha", "dropout": "lora_dropout"}
    | dict.fromkeys(("targets", "target", "modules", "lora_target_modules"), "target_modules"),
    "data": dict.fromkeys(("validation", "eval", "val", "valid", "evaluation", "held_out"), "test"),
    "data.train": dict.fromkeys(("name", "dataset", "file", "id"), "path"),
    "data.test": dict.fromkeys(("name", "dataset", "file", "id"), "path"),
    "algorithm": dict.fromkeys(("estimator", "advantage_estimator", "adv_estimator"), "advantage")
    | dict.fromkeys(("rollout_batch_size", "prompts"), "prompts_per_rollout")
    | dict.fromkeys(("mini_batch_size", "ppo_mini_batch_size"), "sequences_per_update"),
    "trl": dict.fromkeys(("max_new_tokens", "max_tokens", "max_response_length"), "max_completion_length")
    | dict.fromkeys(("batch_size", "micro_batch_size", "train_batch_size"), "per_device_train_batch_size")
    | dict.fromkeys(("group_size", "n", "rollout_n", "num_samples_per_prompt"), "num_generations")
    | dict.fromkeys(("kl_coef", "kl_beta", "kl_loss_coef", "kl"), "beta")
    | dict.fromkeys(("clip_range", "clip", "clip_ratio", "cliprange", "clip_eps"), "epsilon")
    | dict.fromkeys(("clip_ratio_high", "clip_range_high"), "epsilon_high")
    | dict.fromkeys(("epochs", "num_epochs"), "num_train_epochs")
    | dict.fromkeys(("steps", "num_steps", "total_steps", "total_training_steps"), "max_steps")
    | dict.fromkeys(("ppo_epochs", "mu"), "num_iterations")
    | dict.fromkeys(("grad_clip", "clip_grad", "max_grad"), "max_grad_norm")
    | {"lr": "learning_rate", "lr_scheduler": "lr_scheduler_type", "optimizer": "optim"}
    | {"gpu_memory_utilization": "vllm_gpu_memory_utilization", "tensor_parallel_size": "vllm_tensor_parallel_size"},
    "logging": dict.fromkeys(("team", "wandb_entity", "org", "organization"), "entity")
    | dict.fromkeys(("wandb_project", "project_name"), "project")
    | {"tag": "tags", "wandb_tags": "tags", "wandb_group": "group", "run_group": "group"},
    "evaluation": {"eval_steps": "every_steps", "steps": "every_steps", "num_samples": "samples", "n": "samples"}
    | dict.fromkeys(("num_generations", "k"), "samples"),
}
"""Section → a name that it does not know → the one that is meant there."""

_WANDB = {
    "WANDB_NOTES": "notes wandb_notes",
    "WANDB_JOB_TYPE": "job_type wandb_job_type",
    "WANDB_RUN_ID": "id run_id wandb_id wandb_run_id",
    "WANDB_DIR": "dir wandb_dir",
    "WANDB_WATCH": "watch wandb_watch",
    "WANDB_LOG_MODEL": "log_model wandb_log_model",
    "WANDB_BASE_URL": "base_url host wandb_base_url",
    "WANDB_API_KEY": "api_key key wandb_key wandb_api_key",
}
"""Variable → keys of ``logging:`` under which it is looked for."""

HERE = {
    "logging.wandb": "Write `report_to: [wandb]`, and `wandb_mode: online` to send it.",
    **{f"logging.{name}": f"Write `report_to: [{name}]`." for name in TRACKERS if name != "wandb"},
    "logging.mode": "Write `wandb_mode: …`.",
    **{
        f"logging.{key}": f"Set the environment variable {variable}."
        for variable, keys in _WANDB.items()
        for key in keys.split()
    },
}
"""Dotted path → what to write instead, where it is no other key of the same section."""

_TOP_LEVEL = {
    **dict.fromkeys(("dataset", "train_data", "train"), ("data", "train")),
    **dict.fromkeys(("eval", "test", "validation"), ("data", "test")),
    **dict.fromkeys(("peft", "lora"), ("model", "lora")),
    **dict.fromkeys(("verifier", "verifiers", "reward_funcs"), ("rewards", "verifier")),
    **dict.fromkeys(("system_prompt",), ("data", "system_prompt")),
}
_SOURCE_COLUMNS = ("prompt", "reference", "group", "question", "answer")


def meant_here(section: str, key: str) -> str | None:
    """The key of ``section`` (dotted; empty at the top) that ``key`` means, if it is known by another name there."""
    return MEANT.get(section, {}).get(key)


def in_another_form(section: str, key: str, kinds: Mapping[str, str]) -> str | None:
    """The advice for a ``key`` that is a part of something in this very section; ``None`` where it is none.

    Args:
        kinds: name of a built-in strategy → its kind.
    """
    if f"{section}.{key}" in HERE:
        return HERE[f"{section}.{key}"]
    if section.startswith("data.") and key in _SOURCE_COLUMNS:
        role = {"question": "prompt", "answer": "reference"}.get(key, key)
        return f"Which column it is stands in the source's columns: `columns: {{{role}: …}}`."
    if section in ("", "algorithm", "trl") and key in kinds:
        return f"A strategy is chosen by its kind: `algorithm: {{{kinds[key]}: {key}}}`, or `{{name: {key}, …}}`."
    return None


def elsewhere(section: str, key: str, fields: Mapping[str, Collection[str]]) -> str | None:
    """The advice for a ``key`` that another section has under this name; ``fields``: dotted section → its keys."""
    if not section and key in _TOP_LEVEL:
        return _under(*_TOP_LEVEL[key])
    return next((_under(other, key) for other, known in fields.items() if other != section and key in known), None)


def elsewhere_by_another_name(section: str, key: str, fields: Mapping[str, Collection[str]]) -> str | None:
    """The advice for a ``key`` that another section has under another name; of a reward, an option of its verifier."""
    if section == "rewards":
        return f"An option of a verifier stands inside it: `verifier: {{name: …, {key}: …}}`."
    found = ((other, meant) for other in fields if other != section and (meant := meant_here(other, key)))
    return next((_under(*pair) for pair in found), None)


def _under(section: str, name: str) -> str:
    return f"Write it under `{section}:` as `{name}: …`." if section else f"Write `{name}: …` at the top level."
