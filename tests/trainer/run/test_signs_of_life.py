"""Without a terminal something is said at least every so often, whatever takes long; with one, nothing."""

import sys
import time

import pytest

from evenkeel.trainer.run.signs_of_life import SignsOfLife


def lines_of(signs: SignsOfLife, capsys: pytest.CaptureFixture[str], seconds: float) -> list[str]:
    with signs.running():
        time.sleep(seconds)
    return capsys.readouterr().out.splitlines()


def test_what_is_under_way_is_said_again_and_again(capsys):
    signs = SignsOfLife(seconds=0.05)
    signs.begins(lambda: "Loading the model")
    said = lines_of(signs, capsys, 0.5)
    assert len(said) >= 3
    assert all(line.startswith("Loading the model, for ") for line in said)


def test_nothing_is_said_where_lines_come_anyway_or_nothing_is_under_way_or_a_bar_moves(capsys, monkeypatch):
    assert lines_of(SignsOfLife(seconds=0.02), capsys, 0.1) == []
    signs = SignsOfLife(seconds=0.5)
    signs.begins(lambda: "Loading the model")
    with signs.running():
        for _ in range(8):
            time.sleep(0.1)
            signs.said()
    assert capsys.readouterr().out == ""
    signs.seconds = 0.02
    monkeypatch.setenv("RANK", "1")
    assert lines_of(signs, capsys, 0.1) == []
    monkeypatch.delenv("RANK")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert lines_of(signs, capsys, 0.1) == []
