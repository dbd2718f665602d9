"""The half of the fresh mistakes that was put aside before anything was changed: see `fresh`."""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

WANDB = ("logging={report_to: [wandb]}",)

ASIDE = [
    # names that TRL or transformers have removed, and those of TRL's own scripts
    mistake(
        "a batch a GPU of evaluations, by its old name",
        "removed-argument",
        "trl.per_gpu_eval_batch_size=8",
        says="evaluation: {batch_size:",
    ),
    mistake("overwriting, as it was", "removed-argument", "trl.overwrite_output_dir=true"),
    mistake("safetensors as a switch", "removed-argument", "trl.save_safetensors=true"),
    mistake(
        "grouping by length, by its old name",
        "removed-argument",
        "trl.group_by_length=true",
        says="train_sampling_strategy",
    ),
    mistake("the hub's token, by its old name", "removed-argument", "trl.push_to_hub_token=x", says="HF_TOKEN"),
    mistake("the hub's id, by its old name", "removed-argument", "trl.push_to_hub_model_id=x", says="hub_model_id"),
    mistake("the precision's backend, as it was", "removed-argument", "trl.half_precision_backend=auto"),
    mistake("Adafactor as a switch", "removed-argument", "trl.adafactor=true", says="optim: adafactor"),
    mistake(
        "vLLM's length, by its old name", "removed-argument", "trl.vllm_max_model_len=512", says="vllm_max_model_length"
    ),
    mistake("Liger's loss, by its old name", "removed-argument", "trl.use_liger_loss=true", says="use_liger_kernel"),
    mistake("4 bits in TRL's scripts", "removed-argument", "trl.load_in_4bit=true", says="quantization"),
    mistake(
        "LoRA's targets in TRL's scripts",
        "removed-argument",
        "trl.lora_target_modules=all-linear",
        says="target_modules",
    ),
    mistake("the data's split in TRL's scripts", "removed-argument", "trl.dataset_train_split=train", says="split"),
    mistake("the rewards in TRL's scripts", "removed-argument", "trl.reward_funcs=[accuracy_reward]", says="rewards"),
    mistake("the model's revision in TRL's scripts", "removed-argument", "trl.model_revision=main", says="revision"),
    mistake(
        "guided decoding, by its old name",
        "removed-argument",
        "trl.vllm_guided_decoding_regex=a",
        says="vllm_structured_outputs_regex",
    ),
    mistake(
        "unique prompts for W&B, by their old name",
        "removed-argument",
        "trl.wandb_log_unique_prompts=true",
        says="log_unique_prompts",
    ),
    mistake(
        "FSDP's layers, by their old name", "removed-argument", "trl.fsdp_transformer_layer_cls_to_wrap=X", says="fsdp"
    ),
    mistake("compilation as it was", "removed-argument", "trl.torchdynamo=inductor", says="torch_compile"),
    # a file of another kind
    Mistake(
        "a tuned sweep as a run",
        "other-kind-of-file",
        yaml="config: run.yaml\nbaseline: a\nvariants:\n  a: {}\n  b: {}\nseeds: [0, 1]\n"
        "tune: {grid: {trl.learning_rate: [1, 2]}}\n",
        says="evenkeel sweep run run.yaml",
    ),
    Mistake(
        "a DeepSpeed file as a run",
        "other-kind-of-file",
        yaml='{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n',
        says="DeepSpeed",
    ),
    Mistake(
        "an FSDP launcher's file as a run",
        "other-kind-of-file",
        yaml="distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nmixed_precision: bf16\n",
        says="--config_file run.yaml",
    ),
    Mistake(
        "a trl script's file",
        "other-kind-of-file",
        yaml="model_name_or_path: x\ndataset_name: y\nlearning_rate: 1e-6\n",
    ),
    # parts
    mistake("a token weight in capitals", "unknown-name", "algorithm.token_weight=Adv_Reweight", says="adv_reweight?"),
    mistake("a schedule with a dash", "unknown-name", "algorithm.update_schedule=single-pass", says="single_pass?"),
    mistake("an estimator written as in papers", "unknown-name", "algorithm.advantage='Dr. GRPO'", says="dr_grpo?"),
    mistake("a verifier in capitals", "unknown-name", "rewards.0.verifier=ExactMatch", says="exact_match?"),
    mistake(
        "a schedule in an absolute file",
        "part-in-a-file",
        "algorithm.update_schedule=/tmp/mine.py:schedule",
        says="package.module:attribute",
    ),
    mistake(
        "a file without an attribute", "part-in-a-file", "algorithm.advantage=mine.py", says="package.module:attribute"
    ),
    mistake(
        "a module without an attribute",
        "unknown-name",
        "algorithm.advantage=mypackage.parts.mine",
        says="package.module:attribute",
    ),
    # settings that do not mean what they say
    mistake(
        "the most probable token by generate's switch",
        "generation-kwargs-greedy",
        "trl.generation_kwargs={do_sample: false}",
        says="do_sample",
    ),
    mistake("beams", "generation-kwargs-several", "trl.generation_kwargs={num_beams: 4}", says="num_beams"),
    mistake("one token by min_p", "one-token-min-p", "trl.min_p=1.0", says="min_p"),
    mistake(
        "a shorter length for generate",
        "generation-kwargs-overrule",
        "trl.generation_kwargs={max_new_tokens: 2}",
        says="max_completion_length",
    ),
    mistake(
        "a total length for generate",
        "generation-kwargs-overrule",
        "trl.generation_kwargs={max_length: 20}",
        says="max_completion_length",
    ),
    mistake(
        "a temperature for generate",
        "generation-kwargs-overrule",
        "trl.generation_kwargs={temperature: 0.5}",
        says="temperature",
    ),
    mistake(
        "a default clip that is upside down",
        "epsilon-high-below-epsilon",
        "trl.epsilon=0.3",
        "trl.epsilon_high=0.2",
        says="epsilon_high",
    ),
    mistake("a cap below one", "delta-inside-the-clip", "trl.delta=0.5", says="delta"),
    mistake(
        "a cap inside the high clip", "delta-inside-the-clip", "trl.epsilon_high=0.4", "trl.delta=1.3", says="delta"
    ),
    mistake("many steps and a half of warm-up", "warmup-of-a-fraction", "trl.warmup_steps=10.5", says="warmup_steps"),
    mistake("LoRA for translation", "lora-task-type", "model.lora={r: 4, task_type: SEQ_2_SEQ_LM}", says="CAUSAL_LM"),
    mistake(
        "vLLM's memory without vLLM",
        "vllm-without-vllm",
        "trl.vllm_gpu_memory_utilization=0.4",
        severity="warning",
        says="use_vllm",
    ),
    mistake(
        "vLLM's correction without vLLM",
        "vllm-without-vllm",
        "trl.vllm_importance_sampling_mode=token_mask",
        severity="warning",
        says="use_vllm",
    ),
    mistake(
        "a fraction of an epoch beside steps",
        "epochs-beside-steps",
        "trl.num_train_epochs=0.5",
        severity="warning",
        says="num_train_epochs",
    ),
    mistake("this folder as a name", "no-folder-of-its-own", "name='.'"),
    mistake("a byte of zero in a name", "zero-byte", 'name="a\\0b"'),
    mistake("a byte of zero in a directory", "zero-byte", 'output_dir="a\\0b"'),
    mistake(
        "entropy's target without its switch",
        "adaptive-entropy",
        "trl.entropy_target=0.5",
        severity="warning",
        says="use_adaptive_entropy",
    ),
    mistake(
        "how often the reference is synchronized, without it",
        "reference-sync",
        "trl.ref_model_sync_steps=64",
        severity="warning",
        says="sync_ref_model",
    ),
    mistake(
        "steps that are never saved",
        "saving",
        "trl.save_steps=2",
        "trl.save_strategy=no",
        severity="warning",
        says="save_strategy",
    ),
]

RIGHT_ASIDE = [
    ("trl.top_k=2",),
    ("trl.top_k=0",),
    ("trl.temperature=1.2", "trl.min_p=0.05"),
    ("trl.epsilon_high=0.2",),
    ("trl.epsilon=0.1", "trl.epsilon_high=5.0", "trl.loss_type=cispo"),
    ("trl.delta=1.5",),
    ("trl.warmup_steps=1",),
    ("trl.warmup_steps=0.5",),
    ("trl.generation_kwargs={bad_words_ids: [[3]]}",),
    ("trl.max_steps=-1", "trl.num_train_epochs=2"),
    ("name=v1..2",),
    ("model.dtype=float32",),
    ("logging={report_to: [tensorboard]}",),
    ("trl.use_vllm=false",),
    ("algorithm.token_weight={name: adv_reweight, alpha: 0.3}",),
]
"""As `fresh.RIGHT`."""
