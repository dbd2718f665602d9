"""accelerate launch, with the ranks' own exit status and without a traceback of the launcher's.

    evenkeel launch --config_file configs/accelerate/ddp.yaml CONFIG --resume auto

All arguments are accelerate launch's. Exit status: that of the first rank that did not end with 0, see
evenkeel train; 130 where the launcher itself was told to stop, and its ranks saved a checkpoint or said that they
could not.
"""

import sys
from collections.abc import Sequence

from evenkeel.trainer.run.launcher import launched


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    return launched(sys.argv[1:] if argv is None else argv)
