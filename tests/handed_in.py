"""What the scripts hand to a run of the package `rewards`."""

from rewards import GENERATORS, build_verifier, reward_functions
from rewards.references import check_rewards
from trainer.run.rewards import Rewards

REWARDS = Rewards(build_verifier, GENERATORS, check_rewards, reward_functions)
