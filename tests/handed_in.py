"""What the scripts hand to a run of the package `rewards`."""

from rewards import GENERATORS, reward_functions
from rewards.references import check_rewards
from trainer.run.rewards import Rewards

REWARDS = Rewards(GENERATORS, check_rewards, reward_functions)
