"""What makes a run faster and leaves what it trains as it is: `trainer.step.options.Speed`, as a section."""

from typing import ClassVar, Self

from pydantic import model_validator

from trainer.run.config.problems import refusal, refuse
from trainer.run.config.section import Section
from trainer.step.options import Speed


class _OfARun(Speed):
    """Where a run differs from the drop-in, whose defaults are TRL's own ways."""

    microbatches = "planned"
    skip_old_logps = None  # where planned


class SpeedSection(Section, _OfARun):  # type: ignore[misc]  # frozen, which mypy does not read off the configuration
    """The section ``speed``: fields, types and meanings are those of `Speed`."""

    common_random_numbers: ClassVar[bool] = False  # type: ignore[misc]  # a key of the run

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.skip_old_logps and self.microbatches == "trl":
            what = "is true, but microbatches: trl asks for TRL's own path, bit for bit."
            refuse([refusal(self, what, "Write `microbatches: planned` too, or delete it.", ("skip_old_logps",))])
        return self

    def options(self, *, common_random_numbers: bool) -> Speed:
        """What `RLVRTrainer` takes."""
        return Speed(**self.model_dump(), common_random_numbers=common_random_numbers)
