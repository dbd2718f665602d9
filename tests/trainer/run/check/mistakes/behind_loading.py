"""What used to end in a library's traceback once the model was loaded."""

from tests.trainer.run.check.mistakes.mistake import mistake

TO_WANDB = "logging={report_to: [wandb], wandb_mode: offline}"

BEHIND_LOADING = [
    mistake("a schedule without what it needs", "min_lr", "trl.lr_scheduler_type=cosine_with_min_lr"),
    mistake(
        "a schedule's argument that it has not",
        "warm",
        "trl.lr_scheduler_type=cosine",
        "trl.lr_scheduler_kwargs={warm: 1}",
    ),
    mistake("an optimizer's arguments as one word", "optim_args", "trl.optim_args=wide"),
    mistake("an optimizer's argument that it does not read", "takes no arguments", "trl.optim_args=momentum=0.9"),
    mistake(
        "an optimizer's argument by another name",
        "takes momentum, dampening, nesterov",
        "trl.optim=sgd",
        "trl.optim_args=damping=0.1",
    ),
    mistake(
        "a weight decay that every group of parameters overrides",
        "Write trl.weight_decay for weight_decay",
        "trl.optim=sgd",
        "trl.optim_args='momentum=0.9,weight_decay=0.1'",
    ),
    mistake("a reference that is synchronised and not there", "beta is 0", "trl.sync_ref_model=true"),
    mistake("the best model of no metric", "keep_best", "trl.load_best_model_at_end=true"),
    mistake("FSDP on one process", "nothing to divide", "trl.fsdp=full_shard"),
    mistake("a padding token beyond the embedding", "pads with token 24", "model.name_or_path=models/padding_beyond"),
    mistake("a template that no parser reads", "cannot write a question", "model.name_or_path=models/unread_template"),
    mistake(
        "a template that refuses the system role",
        "no system messages here",
        "model.name_or_path=models/refused_system",
        "data.train.path=data/system.jsonl",
    ),
    mistake("a tokenizer's file with a wrong value", "cannot be opened", "model.name_or_path=models/wrong_tokenizer"),
    mistake("a mode that W&B has not", "'online'", TO_WANDB, environment={"WANDB_MODE": "onlin"}),
    mistake("a project that W&B refuses", "project name", TO_WANDB, environment={"WANDB_PROJECT": "a/b"}),
    mistake("a run id that W&B refuses", "WANDB_RUN_ID", TO_WANDB, environment={"WANDB_RUN_ID": "a/b"}),
    mistake(
        "a key that is cut off",
        "WANDB_API_KEY has 7",
        TO_WANDB.replace("offline", "online"),
        environment={"WANDB_API_KEY": "abcdefg", "WANDB_MODE": "online"},
    ),
    mistake("a device that torch has not", "ACCELERATE_TORCH_DEVICE", environment={"ACCELERATE_TORCH_DEVICE": "gpu"}),
    mistake("a compiler that torch has not", "inductor", environment={"ACCELERATE_DYNAMO_BACKEND": "fast"}),
    mistake("a directory above all others", "output_dir", "output_dir=/"),
]
