"""The second table of x86-64, which a filter of plain numbers misses."""

# machine: x86_64
# ends: killed_signal
X32, GETPID = 0x40000000, 39
try:
    hit(system_call(X32 | GETPID))
except OSError as error:
    hit(error)
