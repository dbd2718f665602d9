"""What of the model and its training a rank holds alone."""

from typing import Any


def parameters_are_sharded(trainer: Any) -> bool:
    """Whether no rank holds all weights (ZeRO-3, FSDP), so that a forward pass needs all ranks at the same time."""
    plugin = trainer.accelerator.state.deepspeed_plugin if trainer.is_deepspeed_enabled else None
    return bool(trainer.is_fsdp_enabled or (plugin is not None and plugin.zero_stage == 3))
