"""Values of the wrong type, out of range, or that cannot be meant; and files that are no YAML."""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

VALUES = [
    mistake("a number in quotes", "float-type", "trl.learning_rate='1e-6'"),
    mistake("underscores in a number", "int-type", "trl.max_steps=1_000", says="max_steps: 1000"),
    mistake("yes for true", "bool-type", "trl.bf16=yes", says="bf16: true"),
    mistake("None for null", "float-type", "trl.beta=None", says="beta: null"),
    mistake("nothing is learned", "greater-than", "trl.learning_rate=0"),
    mistake(
        "1e6 for 1e-6", "large-learning-rate", "trl.learning_rate=1e6", severity="warning", says="learning_rate = 1e+06"
    ),
    mistake("greedy rollouts", "greater-than", "trl.temperature=0"),
    mistake("groups of one", "greater-than-equal", "trl.num_generations=1"),
    mistake("a fraction of a completion", "int-type", "trl.num_generations=4.0", says="num_generations: 4"),
    mistake("an unknown loss", "unknown-word", "trl.loss_type=gpro", says="grpo?"),
    mistake("an unknown schedule of the learning rate", "unknown-word", "trl.lr_scheduler_type=cosin", says="cosine"),
    mistake("an unknown optimizer", "unknown-word", "trl.optim=adam", says="adamw_torch"),
    mistake("a share above one", "less-than-equal", "trl.top_p=1.5"),
    mistake("empty completions", "greater-than-equal", "trl.max_completion_length=0"),
    mistake("a negative seed", "greater-than-equal", "seed=-1"),
    mistake("bf16 as a dtype", "unknown-word", "model.dtype=bf16", says="bfloat16?"),
    mistake("no steps", "no-steps", "trl.max_steps=0", says="num_train_epochs"),
    mistake("no rows", "greater-than-equal", "data.train.max_rows=0"),
    mistake("no rewards", "too-short", "rewards=[]"),
    mistake("one reward instead of a list", "list-type", "rewards={verifier: exact_match}", says="[{verifier: …}]"),
    mistake("a weight in quotes", "float-type", "rewards.0.weight='1.0'"),
    mistake("one logger instead of a list", "list-type", "logging.report_to=wandb", says="report_to: [wandb]"),
    mistake("a name with spaces", "folder-name", "name=my run"),
    mistake("a clip range in percent", "large-epsilon", "trl.epsilon=20", severity="warning", says="epsilon = 20"),
    mistake(
        "warm-up longer than the run",
        "warmup-beyond-end",
        "trl.warmup_steps=50",
        severity="warning",
        says="warmup_steps = 50",
    ),
    mistake("both precisions", "refused-by-trl", "trl.fp16=true", "trl.bf16=true", says="fp16"),
    mistake(
        "weights in float16 under fp16", "float16-with-fp16", "model.dtype=float16", "trl.fp16=true", says="GradScaler"
    ),
    mistake(
        "a batch size that TRL would shrink",
        "refused-by-trl",
        "trl.auto_find_batch_size=true",
        says="auto_find_batch_size",
    ),
    mistake("two seeds", "seed-twice", "seed=1", "trl.seed=2"),
    mistake("a device in quotes", "bool-type", "trl.use_cpu='yes'", says="use_cpu: true"),
]

FILES = [
    Mistake("a tab", "not-yaml", yaml="model:\n\tname_or_path: tiny\n"),
    Mistake("a key written twice", "key-twice", yaml="trl: {beta: 0.0}\ntrl: {epsilon: 0.2}\n"),
    Mistake("an empty file", "no-sections", yaml=""),
    Mistake("an open bracket", "not-yaml", yaml="model: {name_or_path: [\n"),
    Mistake("a list of runs", "no-sections", yaml="- model: tiny\n"),
    Mistake("YAML 1.1's merge key", "bad-key", yaml="base: &b {r: 8}\nmodel:\n  <<: *b\n"),
    Mistake(
        "a base that is not there",
        "no-base",
        yaml="extends: bas.yaml\n",
        files={"base.yaml": "seed: 1\n"},
        says="base.yaml?",
    ),
    Mistake(
        "a base of a base",
        "second-base",
        yaml="extends: base.yaml\n",
        files={"base.yaml": "extends: further.yaml\n", "further.yaml": "seed: 1\n"},
    ),
    Mistake(
        "a file without a model",
        "missing-key",
        yaml="data: {train: {path: rows.jsonl}}\nrewards: [{verifier: exact_match}]\n",
    ),
    Mistake("a Python script", "not-yaml", yaml="import os\nprint(os: {)\n"),
    mistake(
        "an override that was cut by spaces",
        "bad-override",
        "trl.beta",
        "=",
        "0.1",
        says="does not have the form key=value",
    ),
    mistake("an override with a dash", "bad-override", "-trl.beta=0.1"),
    mistake("nothing behind the equals sign", "bad-override", "trl.beta="),
    mistake("a reward that is not there", "bad-place", "rewards.3.weight=2"),
    mistake("an option of a name", "bad-place", "algorithm.advantage=grpo", "algorithm.advantage.k=2"),
    mistake("a base on the command line", "bad-override", "extends=base.yaml"),
]
