"""`evenkeel branch`, from a checkout: python scripts/branch.py --help"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import sys

from evenkeel.trainer.command.branch import main

if __name__ == "__main__":
    sys.exit(main())
