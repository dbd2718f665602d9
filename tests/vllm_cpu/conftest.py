"""A real engine starts only where it is asked for by name."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "vllm" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("vllm") is not None:
                item.add_marker(pytest.mark.skip(reason="starts a vLLM engine: run with -m vllm"))
