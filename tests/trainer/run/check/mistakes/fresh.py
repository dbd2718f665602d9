"""Refusals that must help and settings that do not mean what they say: the half that was seen while they were written.

The other half is `aside`, written before and not read meanwhile.
"""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

VLLM = ("trl.use_vllm=true", "trl.vllm_mode=colocate")

FRESH = [
    # names that TRL or transformers have removed, and those of TRL's own scripts
    mistake(
        "transformers' old name of when to evaluate",
        "removed-argument",
        "trl.evaluation_strategy=steps",
        says="every_steps",
    ),
    mistake("LoRA's switch in TRL's scripts", "removed-argument", "trl.use_peft=true", says="model: {lora:"),
    mistake("warm-up as a share, by its old name", "removed-argument", "trl.warmup_ratio=0.1", says="warmup_steps"),
    mistake(
        "where TensorBoard logs, as it was",
        "removed-argument",
        "trl.logging_dir=logs",
        says="logging: {report_to: [tensorboard]}",
    ),
    mistake("no GPU, by its old name", "removed-argument", "trl.no_cuda=true", says="use_cpu"),
    mistake("vLLM's device as it was", "removed-argument", "trl.vllm_device=auto", says="vllm_mode"),
    mistake(
        "a batch a GPU, by its old name",
        "removed-argument",
        "trl.per_gpu_train_batch_size=8",
        says="per_device_train_batch_size",
    ),
    mistake("the model's name in TRL's scripts", "removed-argument", "trl.model_name_or_path=x", says="name_or_path"),
    mistake("the data's name in TRL's scripts", "removed-argument", "trl.dataset_name=x", says="data: {train: {path:"),
    # a file of another kind
    Mistake(
        "a sweep as a run",
        "other-kind-of-file",
        yaml="config: base.yaml\nvariants: {a: , b: }\nseeds: [0]\n",
        says="evenkeel sweep run run.yaml",
    ),
    Mistake(
        "an accelerate file as a run",
        "other-kind-of-file",
        yaml="compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\n",
        says="--config_file run.yaml",
    ),
    Mistake(
        "an evaluation as a run",
        "no-rows",
        yaml="model: {name_or_path: models/tiny}\ndata: {test: {path: data/rows.jsonl}}\n"
        "rewards: [{verifier: exact_match}]\n",
        says="evenkeel evaluate",
    ),
    # parts
    mistake("an estimator in capitals", "unknown-name", "algorithm.advantage=GRPO", says="grpo?"),
    mistake(
        "a part in a file",
        "part-in-a-file",
        "algorithm.advantage=parts/mine.py:estimator",
        says="package.module:attribute",
    ),
    mistake(
        "a verifier in a file, with a dot",
        "part-in-a-file",
        "rewards.0.verifier=./my_parts.py:judge",
        says="my_parts:judge",
    ),
    # settings that do not mean what they say
    mistake("greedy by top_k", "one-token-top-k", "trl.top_k=1", says="top_k: 0"),
    mistake("hardly any temperature", "one-token-temperature", "trl.temperature=1e-6", says="temperature"),
    mistake("a nucleus of one token", "one-token-top-p", "trl.top_p=1e-9", says="top_p"),
    mistake(
        "a length for generate",
        "generation-kwargs-overrule",
        "trl.generation_kwargs={max_new_tokens: 64}",
        says="max_completion_length",
    ),
    mistake("a clip that is upside down", "epsilon-high-below-epsilon", "trl.epsilon_high=0.1", says="epsilon_high"),
    mistake("a cap inside the clip", "delta-inside-the-clip", "trl.delta=1.1", severity="error", says="delta"),
    mistake("a step and a half of warm-up", "warmup-of-a-fraction", "trl.warmup_steps=1.5", says="warmup_steps: 2"),
    mistake("LoRA for classification", "lora-task-type", "model.lora={r: 4, task_type: SEQ_CLS}", says="CAUSAL_LM"),
    mistake("weights in float16 without a scaler", "float16-without-a-scaler", "model.dtype=float16", says="bfloat16"),
    mistake(
        "a server's timeout without vLLM",
        "vllm-without-vllm",
        "trl.vllm_server_timeout=60.0",
        severity="warning",
        says="use_vllm",
    ),
    mistake(
        "epochs beside steps",
        "epochs-beside-steps",
        "trl.num_train_epochs=5",
        severity="warning",
        says="num_train_epochs",
    ),
    mistake("the folder above as a name", "no-folder-of-its-own", "name='..'"),
    mistake(
        "a token weight of a million",
        "heavy-token-weights",
        "algorithm.token_weight=heavy_part:heavy",
        severity="warning",
        files={"heavy_part.py": "import torch\n\n\ndef heavy(mask):\n    return 1e6 * torch.ones_like(mask).float()\n"},
        says="1e+06",
    ),
    mistake(
        "a product of ratios over a hundred tokens",
        "coefficient-under-rounding",
        "algorithm={coefficient: dfpo_min_replace, prompts_per_rollout: 4, sequences_per_update: 16}",
        "trl={loss_type: cispo, num_iterations: 2, bf16: true, max_completion_length: 100}",
        severity="warning",
        says="weight: geometric",
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
    ("name=a.b",),
]
"""Changes to the right run that leave it right: neither an error nor a warning."""
