"""Exponential matching."""

# ends: killed_cpu
# unconfined: skip, the limit of time holds at every level
import re

re.match(r"(a+)+$", "a" * 60 + "b")
