"""Prompt samplers: which prompts the next rollout batch holds.

A sampler is a class. Called with ``count``, ``num_prompts`` and ``seed`` it returns the positions of the next prompts
in the training data; ``observe(prompts, solved)``, if it has that method, gets the results of the last prompts;
``max_rounds`` above 1 asks the trainer to generate again until a rollout batch has enough groups with a gradient. Its
state is saved with every checkpoint. All ranks make the same calls, so it must depend on nothing else.
"""

from evenkeel.trainer.algorithms.registry import collected, no_other

globals().update(collected(__name__))
__getattr__ = no_other(__name__)
