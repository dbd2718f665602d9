"""The same sweep for W&B's own agents: they hand out cells, and each is run as `scripts/sweep.py cell` runs it."""

from collections.abc import Sequence
from pathlib import Path

from trainer.comparison.sweeps.cells import Cell
from trainer.comparison.sweeps.schema import Sweep
from trainer.run.config.yaml_document import write


def wandb_sweep(sweep: Sweep, cells: Sequence[Cell], file: Path) -> str:
    """The YAML that `wandb sweep` reads: a grid over the variants (with the points of the grid) and the seeds.

    A variant stands for several settings, which W&B's parameters cannot, so its agents are given names of cells.
    """
    return write(
        {
            "name": sweep.name,
            "program": "scripts/sweep.py",
            "method": "grid",
            "parameters": {
                "seed": {"values": list(sweep.seeds)},
                "variant": {"values": list(dict.fromkeys(cell.variant for cell in cells))},
            },
            # an agent talks to W&B's server, so its runs must too, whatever the run file says
            "command": [
                "${env}",
                "WANDB_MODE=online",
                "${interpreter}",
                "${program}",
                "cell",
                str(file),
                "${args_no_hyphens}",
            ],
        }
    )
