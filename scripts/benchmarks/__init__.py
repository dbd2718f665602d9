"""Measure speed and errors; what is compared takes turns in one run.

Ratios are medians over rounds, with the least and the most in brackets: on a machine that others use too they hold
where seconds do not.
"""

import os

import scripts._installed  # noqa: F401

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
