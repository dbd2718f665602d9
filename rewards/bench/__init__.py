"""Rows, answers and programs that test verifiers and reward functions; `audit` runs them."""
