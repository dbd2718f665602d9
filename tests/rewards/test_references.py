"""Rows whose reference a verifier cannot use: refused by their numbers, or a few of them left out aloud."""

import logging
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards import Verdict, build_verifier
from evenkeel.rewards.references import check_rewards, unusable_references
from evenkeel.rewards.verifier import Verifier
from evenkeel.rewards.verifiers.formatting import CosineLength

VERIFIERS: dict[str, Verifier] = {"sums": build_verifier("countdown"), "words": build_verifier("exact_match")}
TASKS = {"sums": "sums", "words": "words"}
GOOD, BAD = {"numbers": [3, 4], "target": 7}, {"numbers": [3, 4], "target": 5.5}
REFERENCES: list[Any] = ["yes", GOOD, "no", BAD, GOOD, {"no": "text"}]
ROW_TASKS = ["words", "sums", "words", "sums", "sums", "words"]


def test_rows_that_nobody_can_solve_are_found() -> None:
    unsolvable = {"numbers": [1, 1, 1], "target": 99}
    found = unusable_references(VERIFIERS["sums"], [GOOD, unsolvable, {"numbers": [1] * 9, "target": 99}])
    assert found == {1: "nobody can earn it: no expression over some of [1, 1, 1] equals 99"}
    all_of = build_verifier({"name": "countdown", "use_all": True})
    assert unusable_references(all_of, [GOOD, {"numbers": [7, 1, 1], "target": 7}]).keys() == set()
    assert unusable_references(all_of, [{"numbers": [7, 5], "target": 7}]).keys() == {0}


def test_a_few_rows_are_left_out_and_named_by_their_numbers_and_more_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert unusable_references(VERIFIERS["sums"], [GOOD, BAD, GOOD]).keys() == {1}
    with pytest.raises(Refusal, match=r"^data.train, sums: .* 1 rows:\n  row 3: .*\n.*max_unusable"):
        check_rewards(VERIFIERS, TASKS, REFERENCES, ROW_TASKS, "data.train")
    with caplog.at_level(logging.WARNING):
        kept = check_rewards(VERIFIERS, TASKS, REFERENCES, ROW_TASKS, "data.train", max_unusable=2)
    assert kept == [0, 1, 2, 4]
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in said] == ["data.train, sums", "data.train, words"]
    assert "row 3" in said[0]
    assert "row 5" in said[1]
    with pytest.raises(Refusal, match=r"data.train, words: .*\n  row 5"):
        check_rewards(VERIFIERS, TASKS, REFERENCES, ROW_TASKS, "data.train", max_unusable=1)


def test_a_users_verifier_is_tried_alike_alone_and_paid_by_length() -> None:
    sizes: list[int] = []

    class Own(Verifier):
        def __call__(self, completion: str, reference: Any) -> Verdict:
            return Verdict(None if reference == 1 else 0.0, None, "no timeout_s")

        def judge_all(self, completions: Any, references: Any) -> list[Verdict]:
            sizes.append(len(completions))
            return super().judge_all(completions, references)

        def unanswerable(self, reference: Any) -> str:
            return "prime" * (reference == 97)

        def wrong_completion(self, reference: Any) -> str | None:
            return None if reference != 98 else str(1 / 0)

    for verifier in (Own(), CosineLength(Own(), 9)):
        found = unusable_references(verifier, range(100))
        assert (found.keys(), sizes) == ({1, 97, 98}, [64, 36])
        sizes.clear()


def test_none_of_a_function_of_trls_leaves_a_row_to_others_that_pay_it_and_no_row_after_a_timeout_is_usable() -> None:
    own = build_verifier(lambda completions, reference: [None if word == "no" else 0.0 for word in reference])
    rows: Any = [{"prompt": "", "reference": reference} for reference in ("yes", "no")]
    arguments: Any = {"a": own, "b": VERIFIERS["words"]}, {"a": None, "b": None}, ["yes", "no"], None, "data.train"
    assert check_rewards(*arguments, rows=rows) == [0, 1]
    with pytest.raises(Refusal, match=r"a: unusable references in 1 rows:\n  row 1: .* None: not applicable"):
        check_rewards(*arguments, rows=rows, only_measure=["b"])
    found = unusable_references(build_verifier("tests.rewards.user_verifiers.written:sleeps"), range(70))
    assert ("timeout_s = 1" in found[0], found[69][:9]) == (True, "not tried")
