"""A computation that never lets the interpreter look at signals."""

# ends: killed_cpu
pow(3, 10**9)
