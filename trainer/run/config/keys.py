"""Keys that a run file does not have: names from papers, other frameworks and earlier versions of TRL; other sections.

Each table leads from what users write to what to write instead.
"""

from collections.abc import Collection, Mapping

from evenkeel.trainer.run.config.trackers import TRACKERS

_OTHER_NAMES = {
    "model": {
        "name_or_path": "name path model_name id",
        "dtype": "torch_dtype precision",
        "lora": "peft peft_config adapter lora_config",
    },
    "model.lora": {
        "r": "rank lora_r lora_rank",
        "lora_alpha": "alpha",
        "lora_dropout": "dropout",
        "target_modules": "targets target modules lora_target_modules",
    },
    "data": {"test": "validation eval val valid evaluation held_out"},
    "data.train": {"path": "name dataset file id"},
    "data.test": {"path": "name dataset file id"},
    "algorithm": {
        "advantage": "estimator advantage_estimator adv_estimator",
        "prompts_per_rollout": "rollout_batch_size prompts",
        "sequences_per_update": "mini_batch_size ppo_mini_batch_size",
    },
    "trl": {
        "max_completion_length": "max_new_tokens max_tokens max_response_length",
        "per_device_train_batch_size": "batch_size micro_batch_size train_batch_size",
        "num_generations": "group_size n rollout_n num_samples_per_prompt",
        "beta": "kl_coef kl_beta kl_loss_coef kl",
        "epsilon": "clip_range clip clip_ratio cliprange clip_eps",
        "epsilon_high": "clip_ratio_high clip_range_high",
        "num_train_epochs": "epochs num_epochs",
        "max_steps": "steps num_steps total_steps total_training_steps",
        "num_iterations": "ppo_epochs mu",
        "max_grad_norm": "grad_clip clip_grad max_grad",
        "learning_rate": "lr",
        "lr_scheduler_type": "lr_scheduler",
        "optim": "optimizer",
        "vllm_gpu_memory_utilization": "gpu_memory_utilization",
        "vllm_tensor_parallel_size": "tensor_parallel_size",
    },
    "evaluation": {"every_steps": "eval_steps steps", "samples": "num_samples n num_generations k"},
}
MEANT = {
    section: {other: key for key, others in names.items() for other in others.split()}
    for section, names in _OTHER_NAMES.items()
}
"""Section → a key that it does not have → the one that is meant."""

_OF_WANDB = "mode project entity tags run_group notes job_type run_id dir api_key"
_OTHER_WAYS = {
    **{f"logging.{name}": f"Write `report_to: [{name}]`." for name in TRACKERS},
    **{f"logging.{key}": f"Set the environment variable WANDB_{key.upper()}." for key in _OF_WANDB.split()},
}
"""Dotted path → what to write, where it is not another key of the same section."""
_TOP_LEVEL = {
    **dict.fromkeys(("dataset", "train_data", "train"), ("data", "train")),
    **dict.fromkeys(("eval", "test", "validation"), ("data", "test")),
    **dict.fromkeys(("peft", "lora"), ("model", "lora")),
    **dict.fromkeys(("verifier", "verifiers", "reward_funcs"), ("rewards", "verifier")),
    "system_prompt": ("data", "system_prompt"),
}
_COLUMNS = {"prompt": "prompt", "reference": "reference", "group": "group", "question": "prompt", "answer": "reference"}

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

_OUT = "Leave it out: {}."
_LORA = "Write it under `model.lora:` as `{}: …`."
_QUANTIZATION = "Write it under `model.quantization:` as `{}: …`, beside `model.lora:`."
_DATA = "Write it under `data:`: `train: {{{}: …}}`."

REMOVED: Mapping[str, str] = {
    # transformers.TrainingArguments
    **dict.fromkeys(("evaluation_strategy", "evaluate_during_training"), "Write `evaluation: {every_steps: …}`."),
    **dict.fromkeys(("half_precision_backend", "fp16_backend"), _OUT.format("bf16 and fp16 say the precision")),
    **dict.fromkeys(("jit_mode_eval", "past_index", "mp_parameters"), _OUT.format("transformers no longer has it")),
    **dict.fromkeys(
        ("fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap"),
        "Write it in the launcher's file, under fsdp_config: see configs/accelerate/fsdp2.yaml.",
    ),
    **dict.fromkeys(("cliprange_value", "vf_coef"), _OUT.format("there is no value function")),
    "per_gpu_eval_batch_size": "Write `evaluation: {batch_size: …}`.",
    "per_gpu_train_batch_size": "Write per_device_train_batch_size: ….",
    "warmup_ratio": "Write warmup_steps: 0.1 for a tenth of the steps; a whole number counts steps.",
    "no_cuda": "Write use_cpu: true.",
    "use_mps_device": _OUT.format("the available device is used"),
    "use_ipex": _OUT.format("transformers no longer has this backend"),
    "xpu_backend": "Write ddp_backend: ….",
    "tpu_num_cores": _OUT.format("the launcher starts the processes"),
    "tpu_metrics_debug": "Write debug: tpu_metrics_debug.",
    "adafactor": "Write optim: adafactor.",
    "group_by_length": "Leave it out: speed.microbatches: planned puts similar lengths together; transformers has "
    "train_sampling_strategy instead.",
    "overwrite_output_dir": _OUT.format("a run whose directory exists gets another name, with a number"),
    "save_safetensors": _OUT.format("weights are always saved as safetensors"),
    "logging_dir": "Write `logging: {report_to: [tensorboard]}`; its files are in the run's directory.",
    "fp16_opt_level": _OUT.format("fp16 is torch's own now, which has no levels"),
    "sharded_ddp": "Launch with configs/accelerate/fsdp2.yaml.",
    "torchdynamo": "Write torch_compile: true and torch_compile_backend: ….",
    "ray_scope": _OUT.format("sweeps are evenkeel sweep's"),
    "dispatch_batches": "Write accelerator_config: {dispatch_batches: …}.",
    "split_batches": "Write accelerator_config: {split_batches: …}.",
    "include_inputs_for_metrics": _OUT.format("verifiers judge what is generated"),
    "include_tokens_per_second": _OUT.format("metrics.jsonl has timing/*_s and the tokens seen"),
    "push_to_hub_token": "Set the environment variable HF_TOKEN: the configuration is saved, a token must not be.",
    "push_to_hub_model_id": "Write hub_model_id: ….",
    "push_to_hub_organization": "Write hub_model_id: ORGANIZATION/NAME.",
    # trl.GRPOConfig
    "max_prompt_length": "Leave it out: TRL 1.16 neither cuts nor drops long prompts, and evenkeel check says "
    "which are too long.",
    "vllm_device": "Write vllm_mode: colocate (the trainer's devices) or server (its own).",
    "vllm_dtype": "Leave it out: a colocated engine takes the dtype of the model's config.json, a server its own.",
    "vllm_max_model_len": "Write vllm_max_model_length: ….",
    "vllm_guided_decoding_regex": "Write vllm_structured_outputs_regex: ….",
    "vllm_enable_prefix_caching": _OUT.format("vLLM decides it"),
    "wandb_log_unique_prompts": "Leave it out, or write log_unique_prompts: true.",
    "use_liger_loss": "Write use_liger_kernel: true.",
    "kl_penalty": "Leave it out: TRL has one estimator of the KL, and `beta: …` weighs it.",
    "lam": _OUT.format("there is no value function, so no generalized advantage"),
    "gamma": _OUT.format("the advantage of a whole response is not discounted"),
    # trl.ModelConfig and trl.ScriptArguments, which its command line mixes with the arguments
    "model_name_or_path": "Write it under `model:` as `name_or_path: …`.",
    "model_revision": "Write it under `model:` as `revision: …`.",
    "use_peft": "Write `model: {lora: {r: 16, lora_alpha: 32, target_modules: all-linear}}`.",
    **{f"lora_{name}": _LORA.format(name) for name in ("r", "target_modules", "target_parameters", "task_type")},
    "lora_alpha": _LORA.format("lora_alpha"),
    "lora_dropout": _LORA.format("lora_dropout"),
    "lora_modules_to_save": _LORA.format("modules_to_save"),
    "use_rslora": _LORA.format("use_rslora"),
    "use_dora": _LORA.format("use_dora"),
    "load_in_4bit": _QUANTIZATION.format("load_in_4bit"),
    "load_in_8bit": "Write `model: {quantization: {load_in_4bit: true}}`: a base in 8 bits is not supported.",
    "bnb_4bit_quant_type": _QUANTIZATION.format("bnb_4bit_quant_type"),
    "use_bnb_nested_quant": _QUANTIZATION.format("bnb_4bit_use_double_quant"),
    "bnb_4bit_quant_storage": _OUT.format("it is transformers' default"),
    "dataset_name": "Write `data: {train: {path: …, split: train}}`.",
    "dataset_config": _DATA.format("config_name"),
    "dataset_train_split": _DATA.format("split"),
    "dataset_test_split": "Write it under `data:`: `test: {path: …, split: …}`.",
    "dataset_streaming": _OUT.format("rows are read once; `max_rows:` takes the first of them"),
    "reward_funcs": "Write them as `rewards: [{verifier: …}]` at the top level.",
    "reward_model_name_or_path": "Write a verifier of your own: `rewards: [{verifier: package.module:attribute}]`.",
}
"""Name → what to write now. What GRPOConfig has again is checked there first."""


def other_key(section: str, key: str) -> str | None:
    """The key of ``section`` (dotted; empty at the top) that ``key`` means, if it is known by another name there."""
    return MEANT.get(section, {}).get(key)


def advice_for(section: str, key: str, fields: Mapping[str, Collection[str]], kinds: Mapping[str, str]) -> str | None:
    """What to write for a ``key`` that has its place elsewhere under this very name.

    Args:
        fields: dotted section → its keys.
        kinds: name of a built-in strategy → its kind.
    """
    if f"{section}.{key}" in _OTHER_WAYS:
        return _OTHER_WAYS[f"{section}.{key}"]
    if section.startswith("data.") and key in _COLUMNS:
        return f"Columns are named in the source's columns: `columns: {{{_COLUMNS[key]}: …}}`."
    if section in ("", "algorithm", "trl") and key in kinds:
        return f"A strategy is chosen by its kind: `algorithm: {{{kinds[key]}: {key}}}`, or `{{name: {key}, …}}`."
    if not section and key in _TOP_LEVEL:
        return _under(*_TOP_LEVEL[key])
    return next((_under(other, key) for other, known in fields.items() if other != section and key in known), None)


def suggest_key(section: str, key: str, fields: Mapping[str, Collection[str]]) -> str | None:
    """What to write for a ``key`` that another section has under another name; of a reward, a verifier's option."""
    if section == "rewards":
        return f"A verifier's options are written inside it: `verifier: {{name: …, {key}: …}}`."
    found = ((other, meant) for other in fields if other != section and (meant := other_key(other, key)))
    return next((_under(*pair) for pair in found), None)


def _under(section: str, name: str) -> str:
    return f"Write it under `{section}:` as `{name}: …`." if section else f"Write `{name}: …` at the top level."
