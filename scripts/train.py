"""`evenkeel train`, from a checkout: python scripts/train.py --help"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

from evenkeel.trainer.command.train import main
from evenkeel.trainer.run.wandb_end import end_process

if __name__ == "__main__":
    end_process(main())
