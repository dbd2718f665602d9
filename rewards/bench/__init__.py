"""Rows, answers and programs with which verifiers and reward functions are tried; `audit` asks them."""
