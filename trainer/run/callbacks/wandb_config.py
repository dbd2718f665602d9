"""The run's settings on W&B."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class WandbRunConfig(TrainerCallback):
    """Sends the resolved configuration to the W&B run that transformers has opened, beside TRL's arguments."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        import wandb

        if wandb.run is not None:  # on the main process
            wandb.run.config.update({"evenkeel": self.config}, allow_val_change=True)
