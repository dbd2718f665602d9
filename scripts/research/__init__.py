"""Experiments that gave their answer, kept so that it can be asked again: `python -m scripts.research`."""
