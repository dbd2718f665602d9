"""What used to end in a library's traceback once the model was loaded."""

from tests.trainer.run.check.mistakes.mistake import mistake

TO_WANDB = "logging={report_to: [wandb]}"

BEHIND_LOADING = [
    mistake(
        "a schedule without what it needs",
        "schedule-refused",
        "trl.lr_scheduler_type=cosine_with_min_lr",
        says="min_lr",
    ),
    mistake("an optimizer's arguments as one word", "optimizer-refused", "trl.optim_args=wide", says="optim_args"),
    mistake(
        "an optimizer's argument that it does not read", "unread-optimizer-arguments", "trl.optim_args=momentum=0.9"
    ),
    mistake(
        "a weight decay that every group of parameters overrides",
        "unread-optimizer-arguments",
        "trl.optim=sgd",
        "trl.optim_args='momentum=0.9,weight_decay=0.1'",
        says="trl.weight_decay for weight_decay",
    ),
    mistake(
        "a padding token beyond the embedding",
        "padding-beyond-embeddings",
        "model.name_or_path=models/padding_beyond",
        says="token 24",
    ),
    mistake(
        "a template that no parser reads",
        "tokenizer",
        "model.name_or_path=models/unread_template",
        says="cannot write a question",
    ),
    mistake(
        "a template that refuses the system role",
        "template-refuses-messages",
        "model.name_or_path=models/refused_system",
        "data.train.path=data/system.jsonl",
    ),
    mistake(
        "a tokenizer's file with a wrong value",
        "tokenizer",
        "model.name_or_path=models/wrong_tokenizer",
        says="cannot be opened",
    ),
    mistake(
        "a mode that W&B has not", "refused-by-wandb", TO_WANDB, environment={"WANDB_MODE": "onlin"}, says="'online'"
    ),
    mistake("a project that W&B refuses", "refused-by-wandb", TO_WANDB, environment={"WANDB_PROJECT": "a/b"}),
    mistake(
        "a device that torch has not",
        "launch",
        environment={"ACCELERATE_TORCH_DEVICE": "gpu"},
        says="ACCELERATE_TORCH_DEVICE",
    ),
    mistake(
        "a compiler that torch has not", "launch", environment={"ACCELERATE_DYNAMO_BACKEND": "fast"}, says="inductor"
    ),
]
