"""What holds something else for a while: attributes, random streams."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch


@contextmanager
def temporarily(target: Any, changed: Mapping[str, Any]) -> Iterator[None]:
    """``target``, an object or a module, with ``changed`` attributes inside; afterwards as before, come what may."""
    before = {name: getattr(target, name) for name in changed}
    try:
        vars(target).update(changed)
        yield
    finally:
        vars(target).update(before)


def random_streams_kept(device: torch.device) -> AbstractContextManager[None]:
    """Inside, torch's random streams of the CPU and of ``device`` may move; afterwards they are as before."""
    return torch.random.fork_rng(devices=[device] if device.type != "cpu" else [], device_type=device.type)
