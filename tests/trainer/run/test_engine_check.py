"""What vLLM needs is found before a model is loaded."""

import inspect
import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset

from trainer.run import engine_check
from trainer.run.engine_check import SUPPORTED, EngineError, check_engine, length_problem, version_problem


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
    assert problem.startswith(f"vLLM {found} is installed, and TRL 1.16 supports 0.22.0 to 0.31.0")


class Words:
    """A tokenizer of words."""

    def apply_chat_template(self, prompts: list[Any], **_: Any) -> list[str]:
        return [f"user {prompt[0]['content']} assistant" for prompt in prompts]

    def __call__(self, texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[0] * len(text.split()) for text in texts]}


def test_an_absent_package_and_a_short_context_are_refused(monkeypatch: pytest.MonkeyPatch):
    rows = {
        "train": Dataset.from_dict({"prompt": [[{"role": "user", "content": "a b c"}]]}),
        "test": Dataset.from_dict(
            {"prompt": [[{"role": "user", "content": "a"}], [{"role": "user", "content": "a " * 8}]]}
        ),
    }
    wanted = {"use_vllm": True, "vllm_mode": "colocate", "max_completion_length": 100}
    args = SimpleNamespace(**wanted, vllm_max_model_length=109)
    monkeypatch.setattr(engine_check, "installed_version", lambda: None)
    with pytest.raises(EngineError, match="vLLM is not installed here; in server mode too"):
        check_engine(args, rows, Words())
    monkeypatch.setattr(engine_check, "installed_version", lambda: "0.31.0")
    with pytest.raises(EngineError, match=r"longest prompt of data.test has 10 tokens .* 110 or more"):
        check_engine(args, rows, Words())
    check_engine(SimpleNamespace(**wanted, vllm_max_model_length=110), rows, Words())
    check_engine(SimpleNamespace(**wanted, vllm_max_model_length=None), rows, Words())
    check_engine(SimpleNamespace(use_vllm=False), rows, Words())


def test_the_longest_prompt_of_all_datasets_counts():
    assert length_problem({"train": 20, "test": 30}, 70, 100) is None
    assert "data.test has 30 tokens" in str(length_problem({"train": 20, "test": 30}, 71, 100))


def test_this_environment_has_no_vllm_or_a_version_of_it():
    found = engine_check.installed_version()
    assert found is None or re.match(r"\d+\.\d+", found)
