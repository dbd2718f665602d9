"""What makes a run faster and leaves what it trains as it is: `trainer.step.options.Speed`, as a section."""

from typing import ClassVar

from trainer.run.config.section import Section
from trainer.step.options import Speed


class _OfARun(Speed):
    """Where a run differs from the drop-in, whose defaults are TRL's own ways."""

    microbatches = "planned"
    skip_old_logps = None  # where planned


class SpeedSection(Section, _OfARun):  # type: ignore[misc]  # frozen, which mypy does not read off the configuration
    """The section ``speed``: fields, types and meanings are those of `Speed`."""

    common_random_numbers: ClassVar[bool] = False  # type: ignore[misc]  # a key of the run

    def options(self, *, common_random_numbers: bool) -> Speed:
        """What `RLVRTrainer` takes."""
        return Speed(**self.model_dump(), common_random_numbers=common_random_numbers)
