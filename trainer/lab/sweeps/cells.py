"""A sweep unfolded into its cells: one run each, named ``<variant>-s<seed>``."""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.yaml_document import scalar

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
"""Characters that JSON leaves unescaped and YAML does not allow."""


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Attributes:
        family: the variant's name in the file.
        variant: that name with the point of the grid: ``ar,learning_rate=1e-6``.
        baseline: the name of the variant that it is compared with, at the same point of the grid.
        seed: shared by the cells of all variants that are paired with each other.
        settings: dotted key → value, over the base file.
    """

    family: str
    variant: str
    baseline: str
    seed: int
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.variant}-s{self.seed}"

    @property
    def overrides(self) -> list[str]:
        """The settings as arguments of the training script."""
        return [f"{key}={override_value(value)}" for key, value in self.settings.items()]


def cells_of(sweep: Sweep) -> list[Cell]:
    """Variants × grid × seeds; all variants of a seed before the next seed, so that unfinished sweeps compare too.

    A `Refusal` where two cells have the same name, or one that no folder can have.
    """
    cells = [
        Cell(variant, variant + suffix, sweep.baseline + suffix, seed, {**changes, **point})
        for seed in sweep.seeds
        for suffix, point in grid_points(sweep.grid)
        for variant, changes in sweep.variants.items()
    ]
    names = [cell.name for cell in cells]
    if long := [name for name in names if len(name.encode()) > 255]:
        what = f"the folder of {long[0]:.40}… would have a name of more than 255 bytes."
        raise config_error("long-name", "", what, "Write such a value in a variant, with a name of your own.")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        what = f"two cells would be named {repeated[0]}."
        raise config_error("value-twice", "", what, "Write each seed and each value once.")
    return cells


def override_value(value: Any) -> str:
    """YAML text that an override reads back as ``value``, unquoted where possible."""
    if isinstance(value, str) and re.fullmatch(r"[\w./:@+-]+", value) and scalar(value) == value:
        return value
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def grid_points(grid: dict[str, list[Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Every combination of the grid's values with its part of the cell's name."""
    ends = [key.rpartition(".")[2] for key in grid]
    labels = [end if ends.count(end) == 1 else key for key, end in zip(grid, ends, strict=True)]
    return [
        (
            "".join(f",{label}={_label(value)}" for label, value in zip(labels, values, strict=True)),
            dict(zip(grid, values, strict=True)),
        )
        for values in itertools.product(*grid.values())
    ]


def _label(value: Any) -> str:
    """A value as part of a folder's name: ``1e-06`` as ``1e-6``, without spaces, quotes and slashes."""
    text = re.sub(r"e([+-])0+", r"e\1", json.dumps(value, ensure_ascii=False))
    return re.sub(r"[\s/\\]+", "_", text.replace('"', "").replace(": ", "=").replace(", ", "+"))
