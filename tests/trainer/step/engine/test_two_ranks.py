"""Two processes, one server: both check the engine, and both stop with one message."""

from pathlib import Path

import pytest

from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_several_processes import on_two_processes

SCRIPT = """
import pytest
from tests.trainer.step.engine.file_client import use_file_client
from evenkeel.trainer.step.guards import FaultError

use_file_client(pytest.MonkeyPatch(), output)
settings |= dict(use_vllm=True, vllm_mode="server", vllm_server_base_url="ADDRESS", max_steps=2)
checked = {"agreement_bound": None, "skip_old_logps": True}
try:
    trainer = ours(model, output / "run", strategies=checked, **settings)
    told = [entry["vllm/agreement_max"] for entry in trainer.state.log_history if "vllm/agreement_max" in entry]
except FaultError as stopped:
    told = str(stopped)
(output / f"rank-{rank}.json").write_text(json.dumps(told))
"""


@pytest.mark.slow
def test_both_ranks_agree_or_stop_with_one_message(tiny_model: Path, tmp_path: Path):
    engine = TransformersServer(tiny_model)
    with engine.listening() as url:
        first, second = on_two_processes(SCRIPT.replace("ADDRESS", url), tiny_model, tmp_path)
        assert engine.num_updates == 2
        assert len(first) == 2
        assert max(first) < 1e-5
        assert first == second
        engine.start()
        engine.stale = ("", "lm_head")
        first, second = on_two_processes(SCRIPT.replace("ADDRESS", url), tiny_model, tmp_path)
    assert first == second
    assert "differ from the trainer's" in first
