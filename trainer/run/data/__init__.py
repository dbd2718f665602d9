"""Rows to train on: the sources of a configuration as datasets."""

from trainer.run.data.rows import check_rows_enough, load_mixture, load_rows
from trainer.run.data.sources import Generator
from trainer.run.data.wording import DataError

__all__ = ["DataError", "Generator", "check_rows_enough", "load_mixture", "load_rows"]
