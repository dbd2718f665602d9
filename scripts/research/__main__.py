"""Experiments that gave their answer, to be asked again of another policy; tables in Markdown.

    python -m scripts.research branches --seeds 5
    python -m scripts.research cancellation --prompts 4 --rollouts 2
    python -m scripts.research cancellation configs/knights_knaves/tiny_cpu.yaml --rollouts 5
    python -m scripts.research common_random_numbers --seeds 8 --variant algorithm.advantage=rloo
    python -m scripts.research drift runs/quickstart
    python -m scripts.research false_alarms --output runs/healthy
    python -m scripts.research false_claims
    python -m scripts.research provenance --scripts 1000

Exit status: 0 printed, 2 refused.
"""

import sys
from collections.abc import Sequence

from scripts.one_of import run_one_of

PROGRAMS = {
    "branches": "paired differences of final held-out accuracy between GRPO and six variants, one of them its learning "
    "rate times 1.5: from scratch without common random numbers, and as branches of one parent a seed with them. "
    "5 seeds are 75 runs of half a minute; those that are in --output are not made again.",
    "cancellation": "cancellation/shared_prefix, the mean over the optimizer steps of a few rollout batches: "
    "advantages × optimizer steps a batch, with groups kept in one step and shuffled. With --parameters: of the "
    "gradient of the parameters, in float32 and bfloat16. 2 CPU cores, 2 GB.",
    "common_random_numbers": "the standard deviation over seeds of the difference between a run file and a variant, "
    "with and without common random numbers, in every rollout batch from the second on. 8 seeds are 32 short runs.",
    "false_alarms": "how often the doctor speaks about healthy runs: fifteen strategies and losses × "
    "seeds, 12 steps each of the quickstart's policy. What half of the runs show is printed beside the thresholds, and "
    "the alarms on the other half. 60 runs of 24 s on two shared cores; those that are in --output are not made again.",
    "false_claims": "of claims about equals the share that comes out as supported or contradicted: 2,000 each of 3, 5 "
    "and 10 seeds, against 1 to 3 others, with looks, and of four ways in which seeds and items may differ. 14 min.",
    "provenance": "whether exactly the tokens that a policy wrote are trained in conversations with tools: every chat "
    "template of the installed TRL × random conversations. 1000 a template are three minutes on a shared core.",
    "drift": "how far a run's policy has moved from its start, on prompts all right, all wrong and mixed, and the "
    "learning tax: rollouts of the last batches that it recorded, scored by its newest checkpoint and by the policy "
    "that it started from, summed over the vocabulary at every position. What runs with a reference model log as "
    "drift/kl_* knows the sampled tokens alone. Of LoRA runs give --weights an export. With weights of an earlier step "
    "the texts are still those of the last batches, and no tax is printed.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    return run_one_of("scripts.research", __doc__ or "", PROGRAMS, arguments)


if __name__ == "__main__":
    sys.exit(main())
