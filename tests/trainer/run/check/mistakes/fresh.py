"""Refusals that must help and settings that do not mean what they say: the half that was seen while they were written.

The other half is `aside`, written before and not read meanwhile.
"""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

WANDB = ("logging={report_to: [wandb]}",)
VLLM = ("trl.use_vllm=true", "trl.vllm_mode=colocate")

FRESH = [
    # names that TRL or transformers have removed, and those of TRL's own scripts
    mistake("transformers' old name of when to evaluate", "every_steps", "trl.evaluation_strategy=steps"),
    mistake("LoRA's switch in TRL's scripts", "model: {lora:", "trl.use_peft=true"),
    mistake("warm-up as a share, by its old name", "Write warmup_steps", "trl.warmup_ratio=0.1"),
    mistake("where TensorBoard logs, as it was", "logging: {report_to: [tensorboard]}", "trl.logging_dir=logs"),
    mistake("no GPU, by its old name", "Write use_cpu", "trl.no_cuda=true"),
    mistake("vLLM's device as it was", "vllm_mode", "trl.vllm_device=auto"),
    mistake("a batch a GPU, by its old name", "per_device_train_batch_size", "trl.per_gpu_train_batch_size=8"),
    mistake("the model's name in TRL's scripts", "name_or_path", "trl.model_name_or_path=x"),
    mistake("the data's name in TRL's scripts", "data: {train: {path:", "trl.dataset_name=x"),
    # a file of another kind
    Mistake(
        "a sweep as a run",
        "scripts/sweep.py run run.yaml",
        yaml="config: base.yaml\nvariants: {a: , b: }\nseeds: [0]\n",
    ),
    Mistake(
        "an accelerate file as a run",
        "--config_file run.yaml",
        yaml="compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\n",
    ),
    Mistake(
        "an evaluation as a run",
        "scripts/evaluate.py",
        yaml="model: {name_or_path: models/tiny}\ndata: {test: {path: data/rows.jsonl}}\n"
        "rewards: [{verifier: exact_match}]\n",
    ),
    # parts
    mistake("an estimator in capitals", "Did you mean grpo?", "algorithm.advantage=GRPO"),
    mistake("a part in a file", "package.module:attribute", "algorithm.advantage=parts/mine.py:estimator"),
    mistake("a verifier in a file, with a dot", "my_parts:judge", "rewards.0.verifier=./my_parts.py:judge"),
    # loggers
    mistake("tags as one text", "tags: [a]", "logging.tags=a"),
    mistake("a team without W&B", "report_to: [wandb]", "logging.entity=my-team", severity="warning"),
    # settings that do not mean what they say
    mistake("greedy by top_k", "top_k: 0", "trl.top_k=1"),
    mistake("hardly any temperature", "temperature", "trl.temperature=1e-6"),
    mistake("a nucleus of one token", "top_p", "trl.top_p=1e-9"),
    mistake("a length for generate", "max_completion_length", "trl.generation_kwargs={max_new_tokens: 64}"),
    mistake("a clip that is upside down", "epsilon_high", "trl.epsilon_high=0.1"),
    mistake("a cap inside the clip", "delta", "trl.delta=1.1", severity="error"),
    mistake("a step and a half of warm-up", "warmup_steps: 2", "trl.warmup_steps=1.5"),
    mistake("LoRA for classification", "CAUSAL_LM", "model.lora={r: 4, task_type: SEQ_CLS}"),
    mistake("weights in float16 without a scaler", "bfloat16", "model.dtype=float16"),
    mistake("a server's timeout without vLLM", "use_vllm", "trl.vllm_server_timeout=60.0", severity="warning"),
    mistake("epochs beside steps", "num_train_epochs", "trl.num_train_epochs=5", severity="warning"),
    mistake("W&B's name in the environment", "WANDB_NAME", *WANDB, environment={"WANDB_NAME": "x"}, severity="warning"),
    mistake("W&B switched off", "WANDB_DISABLED", *WANDB, environment={"WANDB_DISABLED": "true"}, severity="warning"),
    mistake("the folder above as a name", "folder", "name='..'"),
    mistake(
        "a token weight of a million",
        "1e+06 on a tiny example",
        "algorithm.token_weight=heavy_part:heavy",
        severity="warning",
        files={"heavy_part.py": "import torch\n\n\ndef heavy(mask):\n    return 1e6 * torch.ones_like(mask).float()\n"},
    ),
]

RIGHT = [
    (),
    ("trl.top_k=20",),
    ("trl.temperature=0.6", "trl.top_p=0.95"),
    ("trl.epsilon=0.2", "trl.epsilon_high=0.28"),
    ("trl.delta=4.0", "trl.loss_type=grpo"),
    ("trl.warmup_steps=0.25",),
    ("trl.warmup_steps=2.0",),
    ("model.lora={r: 4, task_type: CAUSAL_LM}",),
    ("model.dtype=bfloat16",),
    ("trl.generation_kwargs={renormalize_logits: true}",),
    ("logging={report_to: [wandb], entity: my-team, tags: [a, b], group: g}",),
    ("name=a.b",),
]
"""Changes to the right run that leave it right: neither an error nor a warning."""
