"""A run that W&B would not take, because it cannot be reached or knows no such key, does not start."""

import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import wandb

from evenkeel.trainer.command.train import main
from tests.scripts.test_train import run_file as run_file


class KnowsNoKey(BaseHTTPRequestHandler):
    """W&B for whom nobody is logged in."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b'{"errors": [{"message": "not logged in"}]}')

    def log_message(self, *_: Any) -> None: ...


@pytest.mark.parametrize("listens", [False, True])
def test_a_run_that_wandb_would_not_take_is_refused_before_its_model_is_loaded(
    run_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], listens: bool
):
    wandb.teardown()  # of a run before in this process: its session keeps its own variables
    with HTTPServer(("127.0.0.1", 0), KnowsNoKey) as server:
        environment = {"WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_API_KEY": 40 * "1"}
        for name, value in {**environment, "WANDB_MODE": "online", "WANDB_HTTP_TIMEOUT": "1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("WANDB_INIT_TIMEOUT", raising=False)
        if listens:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        else:
            server.server_close()
        assert main([str(run_file), "logging.report_to=[wandb]"]) == 2
        if listens:
            server.shutdown()
    wandb.teardown()
    said = capsys.readouterr().err
    assert "Connecting to W&B" in said
    assert "WANDB_MODE=offline" in said
    assert "unexplained" not in said
    assert float(os.environ["WANDB_INIT_TIMEOUT"]) <= 20  # of its own 90 s, should it go away after that
    assert not (run_file.parent / "run").exists()
