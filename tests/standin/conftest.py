"""Tests marked `standin` run where `-m standin` has installed the device, and are skipped with a reason elsewhere."""

import pytest

from tests.standin import device


@pytest.fixture(autouse=True)
def _on_the_device(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("standin") and not device.is_installed():
        reason = device.why_not() or "torch takes a device once, before all tests: bash scripts/test.sh -m standin -n 0"
        pytest.skip(reason)
