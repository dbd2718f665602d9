"""Only the positions that are scored go through the LM head, on every device.

TRL's fused head projects the positions that carry a label, the completions' tokens, where Triton runs. Elsewhere it
projects every position, prompts and padding included, and throws the others away afterwards: a fixed number of
positions spares devices that compile a recompilation. A CPU compiles nothing and gains by the shorter way too.
Log-probabilities and gradients are the same up to the order in which a matrix product adds.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trl.trainer.utils as trl_head
from torch import device

from trainer.step.set_aside import holding


@contextmanager
def labelled_positions_only(computing_on: device) -> Iterator[None]:
    """Within, TRL's fused head leaves out positions without a label on a CPU too; other devices as TRL has them.

    TRL asks its ``_use_triton`` in this one place which way to take; the kernel that computes asks another one.
    """
    if computing_on.type != "cpu":
        yield
        return
    with holding(trl_head, {"_use_triton": lambda _: True}):
        yield
