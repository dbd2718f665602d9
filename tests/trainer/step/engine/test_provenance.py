"""Conversations that a server writes: exactly its tokens are trained."""

from pathlib import Path

import pytest

from tests.trainer.step.engine.file_client import use_file_client
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_provenance import METRIC, save_calling_policy, trained


@pytest.mark.slow
def test_what_a_server_wrote_over_several_turns_is_what_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    save_calling_policy(tmp_path)
    engine = TransformersServer(tmp_path)
    use_file_client(monkeypatch, tmp_path)
    with engine.listening() as url:
        settings = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": url}
        settings |= {"max_steps": 1, "max_completion_length": 50, "max_tool_calling_iterations": 1}
        log = trained(tmp_path, {}, **settings)
    assert min(entry["tools/call_frequency"] for entry in log) > 0
    assert [entry[METRIC] for entry in log if METRIC in entry] == [1.0]
