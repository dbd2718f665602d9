"""How competitive programs make room for their recursion."""

import resource
import sys

resource.setrlimit(resource.RLIMIT_STACK, (1 << 28, resource.getrlimit(resource.RLIMIT_STACK)[1]))
sys.setrecursionlimit(1 << 20)


def depth(number):
    return 0 if number == 0 else 1 + depth(number - 1)


assert depth(100_000) == 100_000
assert resource.getrlimit(resource.RLIMIT_STACK)[0] == 1 << 28
resource.setrlimit(resource.RLIMIT_STACK, (1 << 28, 1 << 28))
