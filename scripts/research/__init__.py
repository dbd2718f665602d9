"""Experiments that gave their answer, kept so that it can be asked again."""

import scripts._installed  # noqa: F401
