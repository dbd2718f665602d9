"""Experiments that gave their answer, kept so that it can be asked again: `python -m scripts.research`."""

import scripts._installed  # noqa: F401
