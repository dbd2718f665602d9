"""Rows to train on: the sources of a configuration as datasets."""

from trainer.run.data.rows import check_rows_enough, load_mixture, load_rows
from trainer.run.data.sources import DataError, Generator

__all__ = ["DataError", "Generator", "check_rows_enough", "load_mixture", "load_rows"]
