"""Values of the wrong type, out of range, or that cannot be meant; and files that are no YAML."""

from tests.trainer.run.check.mistakes.mistake import mistake

VALUES = [
    mistake("1e6 for 1e-6", "less-than", "trl.learning_rate=1e6"),
    mistake("a name with spaces", "folder-name", "name=my run"),
    mistake("both precisions", "refused-by-trl", "trl.fp16=true", "trl.bf16=true", says="fp16"),
    mistake("weights in float16 under fp16", "unknown-word", "model.dtype=float16", "trl.fp16=true"),
    mistake(
        "a batch size that TRL would shrink",
        "refused-by-trl",
        "trl.auto_find_batch_size=true",
        says="auto_find_batch_size",
    ),
]
