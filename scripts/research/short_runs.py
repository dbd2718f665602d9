"""Runs of a few rollout batches, inside this process, whose directory does not stay."""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.experiment import Experiment


@contextmanager
def short_run(config_path: Path, settings: Mapping[str, Any]) -> Iterator[Any]:
    """The trainer of a run file with ``settings`` (dotted overrides) in its place; what is printed inside is not."""
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        fixed = {"trl.save_strategy": "no", "logging.report_to": "none", "logging.rollouts": "off"}
        overrides = [f"{key}={value}" for key, value in {**fixed, **settings, "output_dir": directory}.items()]
        yield Experiment.of_file(config_path, overrides).trainer
