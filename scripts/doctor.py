"""What is wrong with a run, from what it logged: ours, TRL's, a W&B folder or verl's; see trainer/doctor/command.py.

python scripts/doctor.py runs/quickstart
python scripts/doctor.py outputs/checkpoint-500/trainer_state.json --json
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import sys

from evenkeel.trainer.doctor.command import main

if __name__ == "__main__":
    sys.exit(main())
