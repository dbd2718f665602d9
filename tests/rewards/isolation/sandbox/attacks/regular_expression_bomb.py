"""Exponential matching."""

# ends: killed_cpu
import re

re.match(r"(a+)+$", "a" * 60 + "b")
