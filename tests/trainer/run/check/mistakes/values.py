"""Values of the wrong type, out of range, or that cannot be meant; and files that are no YAML."""

from tests.trainer.run.check.mistakes.mistake import mistake

VALUES = [
    mistake(
        "1e6 for 1e-6", "large-learning-rate", "trl.learning_rate=1e6", severity="warning", says="learning_rate = 1e+06"
    ),
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
]
