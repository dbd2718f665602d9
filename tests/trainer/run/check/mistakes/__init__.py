"""What users get wrong: a table of mistakes, each with what must be found of it."""

from tests.trainer.run.check.mistakes.aside import ASIDE, RIGHT_ASIDE
from tests.trainer.run.check.mistakes.behind_loading import BEHIND_LOADING
from tests.trainer.run.check.mistakes.fresh import FRESH, RIGHT
from tests.trainer.run.check.mistakes.launch import LAUNCH
from tests.trainer.run.check.mistakes.mistake import Mistake
from tests.trainer.run.check.mistakes.models import MODELS
from tests.trainer.run.check.mistakes.rewards import REWARDS
from tests.trainer.run.check.mistakes.rows import ROWS
from tests.trainer.run.check.mistakes.second_look import RIGHT_AT_SECOND_LOOK, SECOND_LOOK
from tests.trainer.run.check.mistakes.sections import SECTIONS
from tests.trainer.run.check.mistakes.values import FILES, VALUES

MISTAKES: list[Mistake] = [*SECTIONS, *VALUES, *FILES, *MODELS, *ROWS, *REWARDS, *LAUNCH, *FRESH, *BEHIND_LOADING]
"""All that are tried each time."""

MORE_MISTAKES: list[Mistake] = [*ASIDE, *SECOND_LOOK]
"""Of the classes of `FRESH`; tried in the slow tests."""

RIGHT_SETTINGS = [*RIGHT, *RIGHT_ASIDE, *RIGHT_AT_SECOND_LOOK]
"""What is laid over the right run and leaves it right."""
