"""`python -m scripts.benchmarks generation` on a real tiny model."""

import re
from pathlib import Path

import pytest

from scripts.benchmarks.__main__ import main


def test_every_way_is_timed_and_compact_gives_the_same_tokens(tiny_model: Path, capsys: pytest.CaptureFixture[str]):
    ways = ["--ways", "trl", "compact", "--rounds", "1", "--rows", "8"]
    policy = [f"model.name_or_path={tiny_model}", "model.assistant_prefix=null", "trl.max_completion_length=8"]
    assert main(["generation", "configs/quickstart.yaml", *policy, *ways]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^8 completions of \d+ tokens, the longest of 8$", printed, re.MULTILINE)
    for way in ("trl", "compact"):
        assert re.search(rf"^{way} +\d+\.\d\d +\d+\.\d\d \[\d.*\] +yes$", printed, re.MULTILINE)


def test_what_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["generation", "configs/quickstart.yaml", "speed.microbatches=packed"]) == 2
    assert "speed.microbatches" in capsys.readouterr().err
