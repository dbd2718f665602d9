"""What the rules and refusals of `fresh` and `aside` may have opened or shut: written when they stood, run once."""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

SECOND_LOOK = [
    mistake("a removed name under another section", "every_steps", "evaluation.evaluation_strategy=steps"),
    mistake("a removed name at the top level", "Write use_cpu: true", "no_cuda=true"),
    mistake("LoRA's switch under model", "lora", "model.use_peft=true"),
    mistake("LoRA's alpha under trl", "model.lora", "trl.lora_alpha=16"),
    mistake("the warm-up's share at the top level", "warmup_steps", "warmup_ratio=0.1"),
    mistake("the discount of PPO", "not discounted", "trl.gamma=0.99"),
    mistake("a key in capitals", "Did you mean max_steps?", "trl.MAX_STEPS=5"),
    mistake("a key in camel case", "Did you mean max_steps?", "trl.maxSteps=5"),
    mistake("a section in capitals", "Did you mean trl?", "TRL={max_steps: 5}"),
    mistake("a loss in capitals", "Did you mean grpo?", "trl.loss_type=GRPO"),
    mistake("an optimizer in capitals", "adamw_torch", "trl.optim=ADAMW_TORCH"),
    mistake("a generator in capitals", "Did you mean countdown?", "data.train={path: null, generator: CountDown}"),
    mistake("a column in capitals", "Did you mean prompt?", "data.train.columns={prompt: Prompt}"),
    mistake(
        "a verifier's option in camel case",
        "case_sensitive",
        "rewards.0.verifier={name: exact_match, caseSensitive: true}",
    ),
    mistake("a part in a file of Windows", "package.module:attribute", "algorithm.advantage='parts\\mine.py:f'"),
    mistake("a part with two colons", "package.module:attribute", "algorithm.advantage='a:b:c'"),
    mistake("top_k and a temperature", "top_k", "trl.top_k=1", "trl.temperature=0.7"),
    mistake("the same by generate's switch", "temperature", "trl.generation_kwargs={top_k: 1, temperature: 0.1}"),
    mistake("a clip that an inherited epsilon turns over", "epsilon_high", "trl.epsilon_high=0.28", "trl.epsilon=0.4"),
    mistake("float16 by TRL's own word for it", "Did you mean dtype?", "model.torch_dtype=float16"),
    mistake("a name of two dots in a folder", "one word", "name=../x"),
    mistake("a zero byte in a model", "character", 'model.name_or_path="a\\0b"'),
    mistake("a zero byte in data", "character", 'data.train.path="a\\0b"'),
    mistake("tags that are numbers and texts", "in quotes", "logging={report_to: [wandb], tags: [a, 1]}"),
    Mistake(
        "a sweep that extends another, as a run",
        "scripts/sweep.py",
        yaml="extends: base.yaml\nvariants: {a: }\nseeds: [1]\n",
    ),
    Mistake("a cut sweep as a run", "scripts/sweep.py", yaml="variants: {a: {trl.beta: 0.1}}\nbaseline: a\n"),
    Mistake("a launcher of one process as a run", "--config_file", yaml="compute_environment: LOCAL_MACHINE\n"),
]

RIGHT_AT_SECOND_LOOK = [
    ("trl.temperature=0.01",),
    ("trl.top_p=0.05", "trl.top_k=50"),
    ("trl.epsilon_high=0.1", "trl.epsilon=0.1"),
    ("trl.delta=2.0", "trl.epsilon_high=0.28", "trl.loss_type=dapo"),
    ("trl.generation_kwargs={do_sample: true}",),
    ("trl.generation_kwargs={num_beams: 1, suppress_tokens: [3]}",),
    ("trl.warmup_steps=1.0",),
    ("model.dtype=float16", "model.lora={r: 4, target_modules: all-linear}"),
    ("trl.num_train_epochs=1", "trl.max_steps=-1"),
    ("trl.save_steps=2", "trl.save_strategy=steps"),
    ("trl.use_vllm=false",),
    ("name=a..b", "output_dir=runs/.hidden"),
    ("trl.sapo_temperature_neg=1.1", "trl.loss_type=sapo"),
    ("logging={report_to: [wandb], tags: []}",),
    ("logging={report_to: [wandb], group: null, entity: null}",),
]
