"""Experiments that gave their answer, to be asked again of another policy; tables in Markdown.

    python -m scripts.research cancellation --prompts 4 --rollouts 2
    python -m scripts.research cancellation configs/knights_knaves/tiny_cpu.yaml --rollouts 5
    python -m scripts.research provenance --scripts 1000

Exit status: 0 printed, 2 refused.
"""

import sys
from collections.abc import Sequence

from scripts.one_of import run_one_of

PROGRAMS = {
    "cancellation": "cancellation/shared_prefix, the mean over the optimizer steps of a few rollout batches: "
    "advantages × optimizer steps a batch, with groups kept in one step and shuffled. With --parameters: of the "
    "gradient of the parameters, in float32 and bfloat16. 2 CPU cores, 2 GB.",
    "provenance": "whether exactly the tokens that a policy wrote are trained in conversations with tools: every chat "
    "template of the installed TRL × random conversations. 1000 a template are three minutes on a shared core.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    return run_one_of("scripts.research", __doc__ or "", PROGRAMS, arguments)


if __name__ == "__main__":
    sys.exit(main())
