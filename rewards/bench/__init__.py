"""Rows, answers and programs with which verifiers and reward functions are tried; `audit` asks them."""

from evenkeel.rewards.bench.built_in import BUILT_IN, Row, built_in_rows

__all__ = ["BUILT_IN", "Row", "built_in_rows"]
