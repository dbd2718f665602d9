"""`evenkeel schema`, from a checkout: python scripts/schema.py --help"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import sys

from evenkeel.trainer.command.schema import main

if __name__ == "__main__":
    sys.exit(main())
