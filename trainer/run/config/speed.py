"""What makes a run faster and leaves what it trains as it is."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from trainer.run.config.problems import refusal, refuse
from trainer.run.config.section import Count, Section


class SpeedSection(Section):
    """``microbatches``: ``planned`` = the same gradient from fewer tokens, ``trl`` = as TRL does.

    ``tokens_per_microbatch`` bounds a planned one, padding included; without it what the configured batch size may take
    does. The gradient of the first ``verify_steps`` optimizer steps is computed by both cuts and compared, and (unless
    that is 0) again at a quarter, half and three quarters of the run and at its last step.
    ``skip_old_logps``: with vLLM, π_old is not scored in a pass of its own where the loss's pass gives the same
    numbers; where ``planned``, unless the file says no.

    ``generation``: ``compact`` = the same tokens for less where transformers generates, ``trl`` = as TRL does.
    """

    microbatches: Literal["planned", "trl"] = "planned"
    tokens_per_microbatch: Count | None = None
    verify_steps: Annotated[int, Field(ge=0)] = 1
    generation: Literal["compact", "trl"] = "trl"
    skip_old_logps: bool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.skip_old_logps and self.microbatches == "trl":
            what = "is true, but microbatches: trl asks for TRL's own path, bit for bit."
            refuse([refusal(self, what, "Write `microbatches: planned` too, or delete it.", ("skip_old_logps",))])
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """What `RLVRTrainer` takes, by keyword."""
        skips = self.microbatches == "planned" if self.skip_old_logps is None else self.skip_old_logps
        return {**self.model_dump(), "skip_old_logps": skips}
