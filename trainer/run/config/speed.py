"""What makes a run faster and leaves what it trains as it is."""

from typing import Annotated, Any, Literal

from pydantic import Field

from trainer.run.config.section import Count, Section


class SpeedSection(Section):
    """How micro-batches are cut: ``planned`` = the same gradient from fewer tokens, ``trl`` = as TRL does.

    ``tokens_per_microbatch`` bounds a planned one, padding included; without it what the configured batch size may take
    does. The gradient of the first ``verify_steps`` optimizer steps is computed by both cuts and compared.
    """

    microbatches: Literal["planned", "trl"] = "planned"
    tokens_per_microbatch: Count | None = None
    verify_steps: Annotated[int, Field(ge=0)] = 1

    @property
    def arguments(self) -> dict[str, Any]:
        """What `RLVRTrainer` takes, by keyword."""
        return self.model_dump()
