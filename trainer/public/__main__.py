"""``python -m evenkeel`` and ``accelerate launch -m evenkeel train CONFIG``."""

import sys

from evenkeel.trainer.command.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
