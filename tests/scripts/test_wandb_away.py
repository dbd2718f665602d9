"""W&B that cannot be reached: a run does not start, and one that has started ends as it should and loses nothing."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import wandb

from evenkeel.trainer.command.train import main
from tests.paths import ROOT
from tests.scripts.test_train import metrics, run_file
from tests.scripts.wandb_server import KEY, serving

__all__ = ["run_file"]


@pytest.mark.parametrize(("key", "listens"), [(KEY, False), (40 * "1", True)])
def test_a_run_that_wandb_would_not_take_is_refused_before_its_model_is_loaded(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str, listens: bool
):
    with serving() as server:
        environment = {"WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": key}
        for name, value in {**environment, "WANDB_MODE": "online", "WANDB_HTTP_TIMEOUT": "3"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("WANDB_INIT_TIMEOUT", raising=False)
        if not listens:
            server.shutdown()
            server.server_close()
        assert main([str(run_file), "logging.report_to=[wandb]"]) == 2
    wandb.teardown()
    said = capsys.readouterr().err
    assert "Connecting to W&B: " in said
    assert "WANDB_MODE=offline" in said
    assert "unexplained" not in said
    assert float(os.environ["WANDB_INIT_TIMEOUT"]) <= 20  # of its own 90 s, should it go away after that
    assert not (run_file.parent / "run").exists()


@pytest.mark.slow
def test_training_goes_on_without_wandb_and_a_sync_completes_it(run_file: Path, tmp_path: Path):
    run = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WANDB_API_KEY": KEY, "TRL_EXPERIMENTAL_SILENCE": "1"}
    environment["WANDB_MODE"] = "online"
    settings = ["logging={report_to: [wandb]}", "trl.max_steps=30", "evaluation.after=false"]
    impatient = "import sys; from evenkeel.trainer.run import wandb_end; wandb_end.SECONDS = 5.0; "
    impatient += "from evenkeel.trainer.command.train import main; wandb_end.end_process(main(sys.argv[1:]))"
    with serving() as server:
        port = server.server_port
        environment["WANDB_BASE_URL"] = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-c", impatient, str(run_file), *settings]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 200
        while not (run / "metrics.jsonl").exists() or max(line["step"] for line in metrics(run)) < 3:
            assert process.poll() is None, process.communicate()[0][-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said[-3000:]
    assert "Traceback" not in said, said[-3000:]
    assert max(line["step"] for line in metrics(run)) == 30
    assert "W&B has not taken everything within 5 s" in said
    (folder,) = re.findall("wandb sync --include-online (.+)", said)
    with serving(port) as server:
        sync = [str(Path(sys.executable).with_name("wandb")), "sync", "--include-online", folder.strip()]
        subprocess.run(sync, env=environment, check=True, capture_output=True, timeout=100)
        assert set(range(1, 31)) <= server.steps
