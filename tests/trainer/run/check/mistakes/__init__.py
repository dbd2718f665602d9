"""What users get wrong: a table of mistakes, each with what must be found of it."""

from tests.trainer.run.check.mistakes.behind_loading import BEHIND_LOADING
from tests.trainer.run.check.mistakes.fresh import FRESH, RIGHT
from tests.trainer.run.check.mistakes.launch import LAUNCH
from tests.trainer.run.check.mistakes.mistake import Mistake
from tests.trainer.run.check.mistakes.models import MODELS
from tests.trainer.run.check.mistakes.rewards import REWARDS
from tests.trainer.run.check.mistakes.rows import ROWS
from tests.trainer.run.check.mistakes.values import VALUES

MISTAKES: list[Mistake] = [*VALUES, *MODELS, *ROWS, *REWARDS, *LAUNCH, *FRESH, *BEHIND_LOADING]

RIGHT_SETTINGS = RIGHT
"""What is laid over the right run and leaves it right."""
