"""An export on the Hub: huggingface_hub itself against a server on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.trainer.run.export.hub_server import hub_server

PUSH = """
import sys
from pathlib import Path
from evenkeel.trainer.run.export.hub import push
from evenkeel.trainer.run.export.source import Refusal
try:
    print(push(Path(sys.argv[1]), sys.argv[2], public="--public" in sys.argv))
except Refusal as error:
    sys.exit(str(error))
"""
pytestmark = pytest.mark.slow  # each starts a process: huggingface_hub reads its settings when it is imported


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Stands for an export."""
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "README.md").write_text("# card\n")
    (tmp_path / "export" / "config.json").write_text("{}")
    return tmp_path / "export"


def pushed(folder: Path, url: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "HF_ENDPOINT": url,
        "HF_TOKEN": "hf_test",
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(folder.parent / "home"),
    }
    return subprocess.run(
        [sys.executable, "-c", PUSH, str(folder), "someone/model", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **settings, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_new_repository_is_private_and_holds_the_folder(folder: Path):
    with hub_server() as hub:
        result = pushed(folder, hub.url)
    assert result.returncode == 0, result.stderr
    assert hub.created[0]["visibility"] == "private"
    assert hub.files == {"README.md": b"# card\n", "config.json": b"{}"}


def test_nothing_goes_to_a_repository_that_is_public_already(folder: Path):
    with hub_server({"id": "someone/model", "private": False, "siblings": []}) as hub:
        result = pushed(folder, hub.url)
        assert "exists and is public" in result.stderr
        assert hub.files == {}


def test_without_network_and_offline_the_export_is_still_there_and_how_to_go_on_is_said(folder: Path):
    for environment in ({}, {"HF_HUB_OFFLINE": "1"}):
        result = pushed(folder, "http://127.0.0.1:9", **environment)
        assert result.returncode == 1
        assert f"hf upload someone/model {folder} --private" in result.stderr
        assert "Traceback" not in result.stderr
    assert json.loads((folder / "config.json").read_text()) == {}
