"""The half of the fresh mistakes that was put aside before anything was changed: see `fresh`."""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

WANDB = ("logging={report_to: [wandb]}",)

ASIDE = [
    # names that TRL or transformers have removed, and those of TRL's own scripts
    mistake(
        "a batch a GPU of evaluations, by its old name", "evaluation: {batch_size:", "trl.per_gpu_eval_batch_size=8"
    ),
    mistake("overwriting, as it was", "Leave it out", "trl.overwrite_output_dir=true"),
    mistake("safetensors as a switch", "Leave it out", "trl.save_safetensors=true"),
    mistake("grouping by length, by its old name", "train_sampling_strategy", "trl.group_by_length=true"),
    mistake("the hub's token, by its old name", "HF_TOKEN", "trl.push_to_hub_token=x"),
    mistake("the hub's id, by its old name", "hub_model_id", "trl.push_to_hub_model_id=x"),
    mistake("the precision's backend, as it was", "Leave it out", "trl.half_precision_backend=auto"),
    mistake("Adafactor as a switch", "optim: adafactor", "trl.adafactor=true"),
    mistake("vLLM's length, by its old name", "vllm_max_model_length", "trl.vllm_max_model_len=512"),
    mistake("Liger's loss, by its old name", "use_liger_kernel", "trl.use_liger_loss=true"),
    mistake("4 bits in TRL's scripts", "quantization", "trl.load_in_4bit=true"),
    mistake("LoRA's targets in TRL's scripts", "target_modules", "trl.lora_target_modules=all-linear"),
    mistake("the data's split in TRL's scripts", "split", "trl.dataset_train_split=train"),
    mistake("the rewards in TRL's scripts", "rewards", "trl.reward_funcs=[accuracy_reward]"),
    mistake("the model's revision in TRL's scripts", "revision", "trl.model_revision=main"),
    mistake("guided decoding, by its old name", "vllm_structured_outputs_regex", "trl.vllm_guided_decoding_regex=a"),
    mistake("unique prompts for W&B, by their old name", "log_unique_prompts", "trl.wandb_log_unique_prompts=true"),
    mistake("FSDP's layers, by their old name", "fsdp", "trl.fsdp_transformer_layer_cls_to_wrap=X"),
    mistake("compilation as it was", "torch_compile", "trl.torchdynamo=inductor"),
    # a file of another kind
    Mistake(
        "a tuned sweep as a run",
        "scripts/sweep.py run run.yaml",
        yaml="config: run.yaml\nbaseline: a\nvariants:\n  a: {}\n  b: {}\nseeds: [0, 1]\n"
        "tune: {grid: {trl.learning_rate: [1, 2]}}\n",
    ),
    Mistake(
        "a DeepSpeed file as a run",
        "DeepSpeed",
        yaml='{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}\n',
    ),
    Mistake(
        "an FSDP launcher's file as a run",
        "--config_file run.yaml",
        yaml="distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nmixed_precision: bf16\n",
    ),
    Mistake("a trl script's file", "section", yaml="model_name_or_path: x\ndataset_name: y\nlearning_rate: 1e-6\n"),
    # parts
    mistake("a token weight in capitals", "Did you mean adv_reweight?", "algorithm.token_weight=Adv_Reweight"),
    mistake("a schedule with a dash", "Did you mean single_pass?", "algorithm.update_schedule=single-pass"),
    mistake("an estimator written as in papers", "Did you mean dr_grpo?", "algorithm.advantage='Dr. GRPO'"),
    mistake("a verifier in capitals", "Did you mean exact_match?", "rewards.0.verifier=ExactMatch"),
    mistake(
        "a schedule in an absolute file", "package.module:attribute", "algorithm.update_schedule=/tmp/mine.py:schedule"
    ),
    mistake("a file without an attribute", "package.module:attribute", "algorithm.advantage=mine.py"),
    mistake("a module without an attribute", "package.module:attribute", "algorithm.advantage=mypackage.parts.mine"),
    # loggers
    mistake("tags without W&B", "report_to: [wandb]", "logging.tags=[a]", severity="warning"),
    mistake("a group without W&B", "report_to: [wandb]", "logging.group=a", severity="warning"),
    mistake("a tag that is a number", "in quotes", "logging={report_to: [wandb], tags: [1]}"),
    mistake("a tag with a comma", "comma", "logging={report_to: [wandb], tags: ['a,b']}"),
    # settings that do not mean what they say
    mistake("the most probable token by generate's switch", "do_sample", "trl.generation_kwargs={do_sample: false}"),
    mistake("beams", "num_beams", "trl.generation_kwargs={num_beams: 4}"),
    mistake("one token by min_p", "min_p", "trl.min_p=1.0"),
    mistake("a shorter length for generate", "max_completion_length", "trl.generation_kwargs={max_new_tokens: 2}"),
    mistake("a total length for generate", "max_completion_length", "trl.generation_kwargs={max_length: 20}"),
    mistake("a temperature for generate", "temperature", "trl.generation_kwargs={temperature: 0.5}"),
    mistake("a default clip that is upside down", "epsilon_high", "trl.epsilon=0.3", "trl.epsilon_high=0.2"),
    mistake("a cap below one", "delta", "trl.delta=0.5"),
    mistake("a cap inside the high clip", "delta", "trl.epsilon_high=0.4", "trl.delta=1.3"),
    mistake("many steps and a half of warm-up", "warmup_steps", "trl.warmup_steps=10.5"),
    mistake("LoRA for translation", "CAUSAL_LM", "model.lora={r: 4, task_type: SEQ_2_SEQ_LM}"),
    mistake("vLLM's memory without vLLM", "use_vllm", "trl.vllm_gpu_memory_utilization=0.4", severity="warning"),
    mistake(
        "vLLM's correction without vLLM", "use_vllm", "trl.vllm_importance_sampling_mode=token_mask", severity="warning"
    ),
    mistake("a fraction of an epoch beside steps", "num_train_epochs", "trl.num_train_epochs=0.5", severity="warning"),
    mistake(
        "W&B's project of another",
        "WANDB_PROJECT",
        "logging={report_to: [wandb], project: a}",
        environment={"WANDB_PROJECT": "b"},
        severity="warning",
    ),
    mistake(
        "W&B's mode of another",
        "WANDB_MODE",
        "logging={report_to: [wandb], wandb_mode: offline}",
        environment={"WANDB_MODE": "disabled"},
        severity="warning",
    ),
    mistake("this folder as a name", "folder", "name='.'"),
    mistake("a byte of zero in a name", "character", 'name="a\\0b"'),
    mistake("a byte of zero in a directory", "character", 'output_dir="a\\0b"'),
    mistake(
        "entropy's target without its switch", "use_adaptive_entropy", "trl.entropy_target=0.5", severity="warning"
    ),
    mistake(
        "how often the reference is synchronized, without it",
        "sync_ref_model",
        "trl.ref_model_sync_steps=64",
        severity="warning",
    ),
    mistake(
        "steps that are never saved", "save_strategy", "trl.save_steps=2", "trl.save_strategy=no", severity="warning"
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
