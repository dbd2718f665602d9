"""Keys that stand in the wrong section, or are called otherwise elsewhere."""

from tests.trainer.run.check.mistakes.mistake import mistake

SECTIONS = [
    mistake("LoRA's rank under trl", "model.lora", "trl.lora_r=16"),
    mistake("LoRA's rank by its name in papers", "Did you mean r?", "model.lora={rank: 16}"),
    mistake("LoRA's alpha", "Did you mean lora_alpha?", "model.lora={r: 8, alpha: 32}"),
    mistake("LoRA's dropout", "Did you mean lora_dropout?", "model.lora={r: 8, dropout: 0.1}"),
    mistake("LoRA at the top level", "under `model:` as `lora", "lora={r: 8}"),
    mistake("peft at the top level", "under `model:` as `lora", "peft={r: 8}"),
    mistake("the learning rate among the strategies", "under `trl:` as `learning_rate", "algorithm.learning_rate=1e-5"),
    mistake("the learning rate at the top level", "under `trl:` as `learning_rate", "learning_rate=1e-5"),
    mistake("the model's name", "Did you mean name_or_path?", "model.name=some/model"),
    mistake("the model's path", "Did you mean name_or_path?", "model.path=some/model"),
    mistake("a misspelt argument of TRL", "Did you mean num_generations?", "trl.num_generation=4"),
    mistake("the length of completions as generate() calls it", "max_completion_length", "trl.max_new_tokens=64"),
    mistake("the batch size as others call it", "Did you mean per_device_train_batch_size?", "trl.batch_size=8"),
    mistake("epochs as others call them", "num_train_epochs", "trl.epochs=2"),
    mistake("the KL coefficient as others call it", "beta", "trl.kl_coef=0.1"),
    mistake("the clip range as others call it", "epsilon", "trl.clip_range=0.2"),
    mistake("group size as the papers call it", "num_generations", "trl.group_size=8"),
    mistake("an argument that TRL has removed", "neither cuts nor drops long prompts", "trl.max_prompt_length=512"),
    mistake("the estimator under trl", "under `algorithm:` as `advantage", "trl.advantage=rloo"),
    mistake("the loss among the strategies", "under `trl:` as `loss_type", "algorithm.loss_type=dapo"),
    mistake("a strategy as a switch", "update_schedule: lopti", "algorithm.lopti=true"),
    mistake("another strategy as a switch", "token_weight: adv_reweight", "algorithm.adv_reweight={alpha: 0.3}"),
    mistake("one reward at the top level", "Did you mean rewards?", "reward={verifier: exact_match}"),
    mistake("a dataset at the top level", "under `data:` as `train", "dataset={path: rows.jsonl}"),
    mistake("held-out rows called validation", "Did you mean test?", "data.validation={path: held_out.jsonl}"),
    mistake("the interval as TRL calls it", "Did you mean every_steps?", "evaluation.eval_steps=2"),
    mistake("samples as others call them", "Did you mean samples?", "evaluation.num_samples=4"),
    mistake("W&B as a switch", "report_to: [wandb]", "logging.wandb=true"),
    mistake("where to report, under trl", "logging: {report_to: [wandb]}", "trl.report_to=wandb"),
    mistake("the directory under trl", "`output_dir:` at the top level", "trl.output_dir=runs/x"),
    mistake("vLLM's memory without its prefix", "vllm_gpu_memory_utilization", "trl.gpu_memory_utilization=0.5"),
    mistake("steps at the top level", "under `trl:` as `max_steps", "steps=100"),
    mistake(
        "a verifier's option beside it", "`verifier: {name: …, case_sensitive: …}`", "rewards.0.case_sensitive=true"
    ),
    mistake("columns beside the source", "`columns: {prompt: …}`", "data.train.prompt=question"),
    mistake("micro-batches, misspelt", "Did you mean microbatches?", "speed.microbatch=planned"),
]
