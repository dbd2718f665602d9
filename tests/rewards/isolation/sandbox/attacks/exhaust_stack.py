"""Nest until the C stack is gone."""

# ends: killed_signal
import functools
import sys

sys.setrecursionlimit(10**9)


@functools.lru_cache(None)
def deeper(depth):
    return deeper(depth + 1)


deeper(0)
