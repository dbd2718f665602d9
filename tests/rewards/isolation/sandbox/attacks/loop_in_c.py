"""A computation that never lets the interpreter look at signals."""

# ends: killed_cpu
# unconfined: skip, the limit of time holds at every level
pow(3, 10**9)
