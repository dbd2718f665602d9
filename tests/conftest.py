"""What all tests share: no network, shapes checked while they run, and one tiny model on disk."""

import gc
import importlib.metadata
import os

os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="offline", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

gc.disable()  # until all tests are imported: nothing of that is garbage, and to look for some takes 3 s
importlib.metadata.metadata = cache(importlib.metadata.metadata)  # accelerate reads peft's 12 times a training (.02 s)
install_import_hook(["evenkeel.trainer.algorithms"], "beartype.beartype")

SLOW = [HealthCheck.too_slow]  # cores that others use too draw examples slowly
settings.register_profile("brief", max_examples=40, suppress_health_check=SLOW)
# pytest --hypothesis-profile thorough
settings.register_profile("thorough", max_examples=1000, suppress_health_check=SLOW)
settings.load_profile("brief")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Here, and not beside the tests that take them: pytest reads no other file before its command line."""
    group = parser.getgroup("gpu", "-m gpu: tests/gpu/test_paths.py")
    group.addoption("--table", action="store_true", help="print what became of each path as a table")
    group.addoption("--cpu", action="store_true", help="leave GPUs alone, and try what runs without")
    group.addoption("--model", help="train this one instead of the tiny policy")


def pytest_configure(config: pytest.Config) -> None:
    """``-m standin`` runs on the stand-in device, which torch and accelerate take before anything else is imported."""
    from tests.standin import device

    if config.option.markexpr.startswith("standin") and device.why_not() is None:
        config.pluginmanager.import_plugin("tests.standin.plugin")


def pytest_collection_finish() -> None:
    """What all imports made stays: every training ends with a collection, which need not look at it again (0.5 s)."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Qwen3 with a word-level tokenizer, saved once: β > 0 reloads the policy from its path."""
    from tests.tiny_model import save_tiny_model

    return save_tiny_model(tmp_path_factory.mktemp("tiny_model"))


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Any:
    """`tiny_model`, loaded."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_model)
