import functools
import sys

sys.setrecursionlimit(1_000_000)


def depth(number):
    return 0 if number == 0 else 1 + depth(number - 1)


assert depth(50_000) == 50_000
depth = functools.cache(depth)  # from now on it calls itself through C
assert depth(50_000) == 50_000
