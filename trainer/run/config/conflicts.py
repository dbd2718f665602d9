"""What two sections of a run say against each other."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import InitErrorDetails

from trainer.run.config.problems import refusal
from trainer.run.config.rules import FILE_RULES, SECTION_RULES, Given, rules_broken


def conflicts(run: dict[str, Any], *, trains: bool = True) -> Iterator[InitErrorDetails]:
    """What two sections of a run's plain data say against each other; parts of a wrong type are passed over.

    Args:
        trains: the run is not read to evaluate alone: what `FILE_RULES` refuse is refused too.
    """
    settings = Given(run)
    for rule, what, instead in rules_broken((*(FILE_RULES if trains else ()), *SECTION_RULES), settings):
        place = rule.settings[0]
        yield refusal(settings.written(place), what, instead, tuple(place.split(".")))
