"""Rows to train on: the sources of a configuration as datasets."""

from evenkeel.trainer.run.data.rows import check_rows_enough, load_rows
from evenkeel.trainer.run.data.sources import Generator

__all__ = ["Generator", "check_rows_enough", "load_rows"]
