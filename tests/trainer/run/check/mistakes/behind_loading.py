"""What used to end in a library's traceback once the model was loaded."""

from tests.trainer.run.check.mistakes.mistake import mistake

BEHIND_LOADING = [
    mistake(
        "a schedule without what it needs",
        "unexplained",
        "trl.lr_scheduler_type=cosine_with_min_lr",
        says="min_lr",
    ),
    mistake("an optimizer's arguments as one word", "unexplained", "trl.optim_args=wide", says="optim_args"),
    mistake("an optimizer's argument that it does not read", "optimizer-arguments", "trl.optim_args='momentum=0.9'"),
    mistake(
        "a padding token beyond the embedding",
        "tokens-beyond-embeddings",
        "model.name_or_path=models/padding_beyond",
    ),
    mistake(
        "a template that no parser reads",
        "tokenizer",
        "model.name_or_path=models/unread_template",
        says="cannot write a question",
    ),
    mistake(
        "a template that refuses the system role",
        "tokenizer",
        "model.name_or_path=models/refused_system",
        "data.train.path=data/system.jsonl",
    ),
    mistake(
        "a tokenizer's file with a wrong value",
        "tokenizer",
        "model.name_or_path=models/wrong_tokenizer",
        says="cannot be opened",
    ),
]
