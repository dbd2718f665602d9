import functools
import sys

sys.setrecursionlimit(1_000_000)


@functools.cache
def depth(number):
    return 0 if number == 0 else 1 + depth(number - 1)


assert depth(50_000) == 50_000
