"""What the rules and refusals of `fresh` and `aside` may have opened or shut: written when they stood, run once."""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

SECOND_LOOK = [
    mistake(
        "a removed name under another section",
        "removed-argument",
        "evaluation.evaluation_strategy=steps",
        says="every_steps",
    ),
    mistake("a removed name at the top level", "removed-argument", "no_cuda=true", says="use_cpu: true"),
    mistake("LoRA's switch under model", "removed-argument", "model.use_peft=true", says="lora"),
    mistake("LoRA's alpha under trl", "removed-argument", "trl.lora_alpha=16", says="model.lora"),
    mistake("the warm-up's share at the top level", "removed-argument", "warmup_ratio=0.1", says="warmup_steps"),
    mistake("the discount of PPO", "removed-argument", "trl.gamma=0.99"),
    mistake("a key in capitals", "unknown-key", "trl.MAX_STEPS=5", says="max_steps?"),
    mistake("a key in camel case", "unknown-key", "trl.maxSteps=5", says="max_steps?"),
    mistake("a section in capitals", "unknown-key", "TRL={max_steps: 5}", says="trl?"),
    mistake("a loss in capitals", "unknown-word", "trl.loss_type=GRPO", says="grpo?"),
    mistake("an optimizer in capitals", "unknown-word", "trl.optim=ADAMW_TORCH", says="adamw_torch"),
    mistake(
        "a generator in capitals", "unknown-name", "data.train={path: null, generator: CountDown}", says="countdown?"
    ),
    mistake("a column in capitals", "data", "data.train.columns={prompt: Prompt}", says="prompt?"),
    mistake(
        "a verifier's option in camel case",
        "unknown-option",
        "rewards.0.verifier={name: exact_match, caseSensitive: true}",
        says="case_sensitive",
    ),
    mistake(
        "a part in a file of Windows",
        "part-in-a-file",
        "algorithm.advantage='parts\\mine.py:f'",
        says="package.module:attribute",
    ),
    mistake("a part with two colons", "failed-import", "algorithm.advantage='a:b:c'", says="module:attribute"),
    mistake("top_k and a temperature", "one-token-top-k", "trl.top_k=1", "trl.temperature=0.7", says="top_k"),
    mistake(
        "the same by generate's switch",
        "generation-kwargs-overrule",
        "trl.generation_kwargs={top_k: 1, temperature: 0.1}",
        says="temperature",
    ),
    mistake(
        "a clip that an inherited epsilon turns over",
        "epsilon-high-below-epsilon",
        "trl.epsilon_high=0.28",
        "trl.epsilon=0.4",
        says="epsilon_high",
    ),
    mistake("float16 by TRL's own word for it", "unknown-key", "model.torch_dtype=float16", says="dtype?"),
    mistake("a name of two dots in a folder", "folder-name", "name=../x"),
    mistake("a zero byte in a model", "zero-byte", 'model.name_or_path="a\\0b"'),
    mistake("a zero byte in data", "zero-byte", 'data.train.path="a\\0b"'),
    Mistake(
        "a sweep that extends another, as a run",
        "other-kind-of-file",
        yaml="extends: base.yaml\nvariants: {a: }\nseeds: [1]\n",
        says="evenkeel sweep",
    ),
    Mistake(
        "a cut sweep as a run",
        "other-kind-of-file",
        yaml="variants: {a: {trl.beta: 0.1}}\nbaseline: a\n",
        says="evenkeel sweep",
    ),
    Mistake(
        "a launcher of one process as a run",
        "other-kind-of-file",
        yaml="compute_environment: LOCAL_MACHINE\n",
        says="--config_file",
    ),
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
]
