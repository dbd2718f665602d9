"""Prints the tables of docs/devices.md.

python -m tests.standin waits      # where the host waits for the device, ours and that of the packages it calls
python -m tests.standin mutants    # code of ours with one device error each, and what sees it
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="disabled", OMP_NUM_THREADS="1", TRANSFORMERS_VERBOSITY="error")

ON_CPU = sys.argv[2:] == ["--cpu"]
if not ON_CPU:
    from tests.standin.plugin import native


def waits() -> list[str]:
    from tests.standin.cases import CASES
    from tests.standin.waits import MICROBATCH, counted, largest

    found = {}
    for name, case in CASES.items():
        with TemporaryDirectory() as folder, counted(native) as found[name]:
            case.run(Path(folder))
    rows = ["| phase | place | waits each time, at most | case with the most |", "|---|---|---|---|"]
    for ours in (True, False):
        rows += [
            f"| {phase} | `{place}` | {count:.3g} | {case} |"
            for (phase, place), (count, case) in largest(found, ours=ours).items()
            if ours or phase == MICROBATCH
        ]
    return rows


def mutants() -> list[str]:
    from tests.standin.mutants import MUTANTS

    rows = ["| left on the CPU | by | case | |", "|---|---|---|---|"]
    for name, mutant in MUTANTS.items():
        with TemporaryDirectory() as folder:
            error = mutant.error(Path(folder))
        module, function = mutant.function.split(":")
        place = f"{module.rpartition('.')[2]}.py:{function.rpartition('.')[2]}"
        rows.append(f"| {name} | `{place}` | {mutant.case} | {'refused' if error else 'not seen'} |")
    return rows


TABLES = {"waits": waits, "mutants": mutants}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in TABLES or (sys.argv[2:] and not (ON_CPU and sys.argv[1] == "mutants")):
        sys.exit("usage: python -m tests.standin waits|mutants [--cpu]")
    sys.stdout.write("\n".join(["", *TABLES[sys.argv[1]](), ""]))
