"""Update schedules: in how many optimizer passes a rollout batch is trained, and which tokens each pass trains.

The passes partition the tokens: every token that counts is trained in exactly one pass. All mini-batches of a pass run
before the next pass, all passes use the probabilities stored when the batch was sampled, and the loss keeps the
denominator of the full response mask, so that the gradients of the passes at equal parameters add up to the joint one.
"""

from trainer.algorithms.update_schedules.lopti import lopti
from trainer.algorithms.update_schedules.schedule import UpdateSchedule
from trainer.algorithms.update_schedules.single_pass import single_pass

__all__ = ["UpdateSchedule", "lopti", "single_pass"]
