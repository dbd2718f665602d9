"""What holds something else for a while: attributes, random streams."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def temporarily(target: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """``target``, an object or a module, with ``changed`` attributes inside; afterwards as before, come what may."""
    own, before = vars(target), {**vars(target)}
    own.update(changed)
    try:
        yield
    finally:
        for name in changed:
            own.pop(name, None)
        own.update({name: before[name] for name in changed if name in before})


@contextmanager
def random_streams_kept(device: torch.device) -> Iterator[None]:
    """Inside, the random streams of Python, NumPy and torch (of the CPU and ``device``) may move; afterwards they are
    as before: an environment draws from any of them.
    """
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[device] if device.type != "cpu" else [], device_type=device.type):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
