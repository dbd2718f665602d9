"""Prints the table of docs/devices.md: code of ours with one device error each, and what sees it.

python -m tests.standin [--cpu]
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="disabled", OMP_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")

if sys.argv[1:] != ["--cpu"]:
    from tests.standin import plugin  # noqa: F401

from tests.standin.mutants import MUTANTS

rows = ["", "| left on the CPU | by | case | |", "|---|---|---|---|"]
for name, mutant in MUTANTS.items():
    with TemporaryDirectory() as folder:
        error = mutant.error(Path(folder))
    module, function = mutant.function.split(":")
    place = f"{module.rpartition('.')[2]}.py:{function.rpartition('.')[2]}"
    rows.append(f"| {name} | `{place}` | {mutant.case} | {'refused' if error else 'not seen'} |")
sys.stdout.write("\n".join([*rows, ""]))
