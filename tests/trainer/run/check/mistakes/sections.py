"""Keys that stand in the wrong section, or are called otherwise elsewhere."""

from tests.trainer.run.check.mistakes.mistake import mistake

SECTIONS = [
    mistake("LoRA's rank under trl", "removed-argument", "trl.lora_r=16", says="model.lora"),
    mistake("LoRA's rank by its name in papers", "unknown-key", "model.lora={rank: 16}", says="r?"),
    mistake("LoRA's alpha", "unknown-key", "model.lora={r: 8, alpha: 32}", says="lora_alpha?"),
    mistake("LoRA's dropout", "unknown-key", "model.lora={r: 8, dropout: 0.1}", says="lora_dropout?"),
    mistake("LoRA at the top level", "in-another-section", "lora={r: 8}", says="`model:`"),
    mistake("peft at the top level", "in-another-section", "peft={r: 8}", says="`model:`"),
    mistake(
        "the learning rate among the strategies", "in-another-section", "algorithm.learning_rate=1e-5", says="`trl:`"
    ),
    mistake("the learning rate at the top level", "in-another-section", "learning_rate=1e-5", says="`trl:`"),
    mistake("the model's name", "unknown-key", "model.name=some/model", says="name_or_path?"),
    mistake("the model's path", "unknown-key", "model.path=some/model", says="name_or_path?"),
    mistake("a misspelt argument of TRL", "unknown-key", "trl.num_generation=4", says="num_generations?"),
    mistake(
        "the length of completions as generate() calls it",
        "unknown-key",
        "trl.max_new_tokens=64",
        says="max_completion_length",
    ),
    mistake("the batch size as others call it", "unknown-key", "trl.batch_size=8", says="per_device_train_batch_size?"),
    mistake("epochs as others call them", "unknown-key", "trl.epochs=2", says="num_train_epochs"),
    mistake("the KL coefficient as others call it", "unknown-key", "trl.kl_coef=0.1", says="beta"),
    mistake("the clip range as others call it", "unknown-key", "trl.clip_range=0.2", says="epsilon"),
    mistake("group size as the papers call it", "unknown-key", "trl.group_size=8", says="num_generations"),
    mistake("an argument that TRL has removed", "removed-argument", "trl.max_prompt_length=512"),
    mistake("the estimator under trl", "in-another-section", "trl.advantage=rloo", says="`algorithm:`"),
    mistake("the loss among the strategies", "in-another-section", "algorithm.loss_type=dapo", says="`trl:`"),
    mistake("a strategy as a switch", "in-another-section", "algorithm.lopti=true", says="update_schedule: lopti"),
    mistake(
        "another strategy as a switch",
        "in-another-section",
        "algorithm.adv_reweight={alpha: 0.3}",
        says="token_weight: adv_reweight",
    ),
    mistake("one reward at the top level", "unknown-key", "reward={verifier: exact_match}", says="rewards?"),
    mistake("a dataset at the top level", "in-another-section", "dataset={path: rows.jsonl}", says="`data:`"),
    mistake("held-out rows called validation", "unknown-key", "data.validation={path: held_out.jsonl}", says="test?"),
    mistake("the interval as TRL calls it", "unknown-key", "evaluation.eval_steps=2", says="every_steps?"),
    mistake("samples as others call them", "unknown-key", "evaluation.num_samples=4", says="samples?"),
    mistake("W&B as a switch", "in-another-section", "logging.wandb=true", says="report_to: [wandb]"),
    mistake(
        "where to report, under trl", "in-another-section", "trl.report_to=wandb", says="logging: {report_to: [wandb]}"
    ),
    mistake("the directory under trl", "in-another-section", "trl.output_dir=runs/x", says="`output_dir:`"),
    mistake(
        "vLLM's memory without its prefix",
        "unknown-key",
        "trl.gpu_memory_utilization=0.5",
        says="vllm_gpu_memory_utilization",
    ),
    mistake("steps at the top level", "in-another-section", "steps=100", says="`trl:`"),
    mistake(
        "a verifier's option beside it",
        "in-another-section",
        "rewards.0.case_sensitive=true",
        says="`verifier: {name: …, case_sensitive: …}`",
    ),
    mistake(
        "columns beside the source", "in-another-section", "data.train.prompt=question", says="`columns: {prompt: …}`"
    ),
    mistake("micro-batches, misspelt", "unknown-key", "speed.microbatch=planned", says="microbatches?"),
]
