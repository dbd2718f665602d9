"""Arguments that TRL and transformers have removed or renamed, and those of TRL's scripts: what to write now."""

from collections.abc import Mapping

_OUT = "Leave it out: {}."
_LORA = "Write it under `model.lora:` as `{}: …`."
_QUANTIZATION = "Write it under `model.quantization:` as `{}: …`, beside `model.lora:`."
_DATA = "Write it under `data:`: `train: {{{}: …}}`."

REMOVED: Mapping[str, str] = {
    # transformers.TrainingArguments
    "evaluation_strategy": "Write `evaluation: {every_steps: …}`.",
    "evaluate_during_training": "Write `evaluation: {every_steps: …}`.",
    "per_gpu_eval_batch_size": "Write `evaluation: {batch_size: …}`.",
    "per_gpu_train_batch_size": "Write per_device_train_batch_size: ….",
    "warmup_ratio": "Write warmup_steps: 0.1 for a tenth of the steps; a whole number counts steps.",
    "no_cuda": "Write use_cpu: true.",
    "use_mps_device": _OUT.format("the device that is there is used"),
    "use_ipex": _OUT.format("transformers has no such backend any more"),
    "xpu_backend": "Write ddp_backend: ….",
    "tpu_num_cores": _OUT.format("the launcher starts the processes"),
    "tpu_metrics_debug": "Write debug: tpu_metrics_debug.",
    "adafactor": "Write optim: adafactor.",
    "group_by_length": "Leave it out: speed.microbatches: planned puts like lengths together; train_sampling_strategy "
    "took its place in transformers.",
    "overwrite_output_dir": _OUT.format("nothing is overwritten, a run that is there gets a number behind its name"),
    "save_safetensors": _OUT.format("weights are always saved as safetensors"),
    "logging_dir": "Write `logging: {report_to: [tensorboard]}`; its files are in the run's directory.",
    "half_precision_backend": _OUT.format("bf16 and fp16 say the precision"),
    "fp16_backend": _OUT.format("bf16 and fp16 say the precision"),
    "fp16_opt_level": _OUT.format("fp16 is torch's own now, without levels"),
    "sharded_ddp": "Launch with configs/accelerate/fsdp2.yaml.",
    "fsdp_min_num_params": "Write it in the launcher's file, under fsdp_config: see configs/accelerate/fsdp2.yaml.",
    "fsdp_transformer_layer_cls_to_wrap": "Write it in the launcher's file, under fsdp_config: see "
    "configs/accelerate/fsdp2.yaml.",
    "torchdynamo": "Write torch_compile: true and torch_compile_backend: ….",
    "jit_mode_eval": _OUT.format("transformers has no such mode any more"),
    "past_index": _OUT.format("transformers has no such argument any more"),
    "mp_parameters": _OUT.format("transformers has no such argument any more"),
    "ray_scope": _OUT.format("sweeps are scripts/sweep.py's"),
    "dispatch_batches": "Write accelerator_config: {dispatch_batches: …}.",
    "split_batches": "Write accelerator_config: {split_batches: …}.",
    "include_inputs_for_metrics": _OUT.format("verifiers judge what is generated"),
    "include_tokens_per_second": _OUT.format("metrics.jsonl has timing/*_s and the tokens seen"),
    "push_to_hub_token": "Set the environment variable HF_TOKEN: the configuration is saved, a token must not be.",
    "push_to_hub_model_id": "Write hub_model_id: ….",
    "push_to_hub_organization": "Write hub_model_id: ORGANIZATION/NAME.",
    # trl.GRPOConfig
    "max_prompt_length": "Leave it out: TRL 1.16 neither cuts nor drops long prompts, and scripts/check.py says "
    "which are too long.",
    "vllm_device": "Write vllm_mode: colocate (the trainer's devices) or server (its own).",
    "vllm_dtype": "Leave it out: a colocated engine takes the dtype of the model's config.json, a server its own.",
    "vllm_max_model_len": "Write vllm_max_model_length: ….",
    "vllm_guided_decoding_regex": "Write vllm_structured_outputs_regex: ….",
    "vllm_enable_prefix_caching": _OUT.format("vLLM decides it"),
    "wandb_log_unique_prompts": "Leave it out, or write log_unique_prompts: true.",
    "use_liger_loss": "Write use_liger_kernel: true.",
    "kl_penalty": "Leave it out: TRL has one estimator of the KL, and `beta: …` weighs it.",
    "cliprange_value": _OUT.format("there is no value function"),
    "vf_coef": _OUT.format("there is no value function"),
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
    "load_in_8bit": "Write `model: {quantization: {load_in_4bit: true}}`: a base of 8 bits is not offered.",
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
