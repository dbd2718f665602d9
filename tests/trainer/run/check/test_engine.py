"""What vLLM needs is found before a model is loaded."""

import inspect
import re
from importlib import import_module
from typing import Any

import pytest

from evenkeel.trainer.run.check import packages as engine
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.check.packages import SUPPORTED, engine_findings, version_problem
from evenkeel.trainer.run.config import RunConfig


def test_the_range_of_versions_is_trls():
    source = inspect.getsource(import_module("trl.import_utils").is_vllm_available)
    stated = re.search(r'Version\("([\d.]+)"\) <= \w+ <= Version\("([\d.]+)"\)', source)
    assert stated is not None
    assert tuple(tuple(map(int, text.split("."))) for text in stated.groups()) == SUPPORTED


@pytest.mark.parametrize("found", ["0.22.0", "0.28.1", "0.31.0", "0.31.0+cpu", "0.24.0+cu129"])
def test_supported_versions_pass(found: str):
    assert version_problem(found) is None


@pytest.mark.parametrize("found", ["0.21.9", "0.31.1", "1.0.0", "0.8.5.post1"])
def test_other_versions_are_refused(found: str):
    problem = version_problem(found)
    assert problem is not None
    code, text = problem
    assert code == "vllm-version"
    assert all(version in text for version in (found, "0.22.0", "0.31.0"))


def test_an_absent_package_is_an_error_where_vllm_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    def found(**arguments: Any) -> list[Any]:
        context = CheckContext(RunConfig.model_construct(trl=arguments), 1)
        return list(engine_findings(context))

    monkeypatch.setattr(engine, "installed_version", lambda: None)
    [finding] = found(use_vllm=True)
    assert (finding.severity, finding.code) == ("error", "vllm-not-installed")
    assert found(use_vllm=False) == []
    monkeypatch.setattr(engine, "installed_version", lambda: "0.31.0")
    assert found(use_vllm=True) == []
