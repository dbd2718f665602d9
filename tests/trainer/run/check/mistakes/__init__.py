"""What users get wrong: a table of mistakes, each with what must be found of it."""

from tests.trainer.run.check.mistakes.launch import LAUNCH
from tests.trainer.run.check.mistakes.mistake import Mistake
from tests.trainer.run.check.mistakes.models import MODELS
from tests.trainer.run.check.mistakes.rewards import REWARDS
from tests.trainer.run.check.mistakes.rows import ROWS
from tests.trainer.run.check.mistakes.sections import SECTIONS
from tests.trainer.run.check.mistakes.values import FILES, VALUES

MISTAKES: list[Mistake] = [*SECTIONS, *VALUES, *FILES, *MODELS, *ROWS, *REWARDS, *LAUNCH]
"""All of them."""
