"""The range of vLLM's versions is TRL's, and any other is refused before a model is loaded."""

import inspect
import re
from importlib import import_module

import pytest

from evenkeel.trainer.run.check import machine


def test_the_range_of_versions_is_trls():
    source = inspect.getsource(import_module("trl.import_utils").is_vllm_available)
    stated = re.search(r'Version\("([\d.]+)"\) <= \w+ <= Version\("([\d.]+)"\)', source)
    assert stated is not None
    assert tuple(tuple(map(int, text.split("."))) for text in stated.groups()) == machine.SUPPORTED


@pytest.mark.parametrize(
    ("found", "is_refused"),
    [("0.22.0", False), ("0.31.0+cpu", False), ("0.21.9", True), ("0.31.1", True), (None, True)],
)
def test_other_versions_are_refused(found: str | None, is_refused: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "find_spec", lambda _: found)
    monkeypatch.setattr(machine, "version", lambda _: found)
    assert [each.code for each in machine.engine_problems()] == ["vllm-version"] * is_refused
