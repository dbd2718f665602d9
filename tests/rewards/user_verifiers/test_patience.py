"""A user's verifier that hangs is named with its rank and row while all ranks wait; then its row is unjudged."""

import logging
import time
from typing import Any

import pytest

from evenkeel.rewards import Verdict, build_verifier
from evenkeel.rewards.user_verifiers import bounded, traits


def judged(completion: str, reference: Any) -> Verdict:
    """Right, or in no time that anybody would wait for."""
    if completion == "hang":
        time.sleep(30)
    return Verdict(1.0, None, "")


@traits(timeout_s=1.0)
def in_thread(completion: str, reference: Any) -> Verdict:
    return judged(completion, reference)


@traits(timeout_s=1.0, picklable=True)
def in_process(completion: str, reference: Any) -> Verdict:
    return judged(completion, reference)


@pytest.mark.parametrize("function", ["in_thread", pytest.param("in_process", marks=pytest.mark.slow)])
def test_the_rank_the_verifier_and_the_row_are_named_and_the_row_is_unjudged(function, caplog, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    verifier = bounded(build_verifier(f"{__name__}:{function}"), patience_s=0.5)
    if function == "in_process":
        verifier.judge_all(["warm"], ["up"])  # its start is not the batch's time
        caplog.clear()
    with caplog.at_level(logging.WARNING):
        verdicts = verifier.judge_all(["a", "b", "hang", "c"], ["w", "x", "the reference", "z"])
    assert [verdict.score for verdict in verdicts] == [1.0, 1.0, None, None]
    assert verdicts[2].killed
    (record,) = caplog.records
    assert f"[rank 3] verifier {__name__}:{function} has judged one batch for 0.5 s" in record.getMessage()
    assert "is at row 2 of 4: completion 'hang', reference 'the reference'" in record.getMessage()


def test_where_the_limit_comes_first_it_is_said_then(caplog):
    verifier = bounded(build_verifier(f"{__name__}:in_thread"), patience_s=60.0)
    with caplog.at_level(logging.WARNING):
        verifier.judge_all(["hang"], [None])
    assert "for 1 s and is at row 0 of 1" in caplog.text


def test_a_batch_in_time_is_not_mentioned(caplog):
    verifier = bounded(build_verifier(f"{__name__}:in_thread"), patience_s=0.2)
    with caplog.at_level(logging.WARNING):
        verifier.judge_all(["a"], [None])
        time.sleep(0.4)
    assert caplog.text == ""
