"""A sandbox for all tests of a file."""

from collections.abc import Iterator

import pytest

from evenkeel.rewards.isolation.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as found:
        yield found
