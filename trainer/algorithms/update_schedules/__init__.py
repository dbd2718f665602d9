"""Update schedules: in how many optimizer passes a rollout batch is trained, and which tokens each pass trains.

The passes partition the tokens: every token that counts is trained in exactly one pass. All mini-batches of a pass run
before the next pass, all passes use the probabilities stored when the batch was sampled, and the loss keeps the
denominator of the full response mask, so that the gradients of the passes at equal parameters add up to the joint one.
"""

from evenkeel.trainer.algorithms.contract import UpdateSchedule as UpdateSchedule
from evenkeel.trainer.algorithms.registry import collected, no_other

globals().update(collected(__name__))
__getattr__ = no_other(__name__)
