"""The coverage table: its numbers against hand-made arithmetic, and where there is none."""

from pathlib import Path

import pytest

from evenkeel.trainer.lab.reports.coverage import coverage_table
from evenkeel.trainer.lab.reports.held_out import Answers
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns


class Recorded(RecordedRun):
    """A run of which only the last answers are known."""

    def __init__(self, variant: str, seed: int, verdicts: list[list[bool | None]]) -> None:
        super().__init__(Path(variant), variant, seed)
        records = [
            {"item": item, "sample": sample, "correct": correct}
            for item, of_item in enumerate(verdicts)
            for sample, correct in enumerate(of_item)
        ]
        self.__dict__["recorded"] = Answers(records)

    def final_answers(self, dataset: str) -> Answers | None:
        answers: Answers = self.__dict__["recorded"]
        return answers


YES, NO = True, False


def recorded(**variants: list[list[list[bool | None]]]) -> RecordedRuns:
    """Variant → seeds × items × samples."""
    by_variant = {
        name: {seed: Recorded(name, seed, verdicts) for seed, verdicts in enumerate(seeds)}
        for name, seeds in variants.items()
    }
    return RecordedRuns("few", by_variant, dict.fromkeys(variants, "base"), {})  # type: ignore[arg-type]


def test_an_item_counts_once_however_often_it_is_solved() -> None:
    base = [[[YES, NO], [NO, YES], [NO, NO], [NO, NO]]] * 3  # 2 of 4 items, accuracy 1/4
    sure = [[[YES, YES], [YES, YES], [NO, NO], [NO, NO]], *[[[YES, YES], [NO, NO], [NO, NO], [NO, NO]]] * 2]
    table = coverage_table(recorded(base=base, sure=sure), "test")
    assert table is not None
    assert table.title == "Coverage: pass@2"
    cells = [[cell.text for cell in row] for row in table.rows]
    assert cells[0][:3] == ["base", "0.500", "–"]
    assert cells[1][:3] == ["sure", "0.333", "−0.167"]  # (2 + 1 + 1) / 12, though 4 of its 8 samples are right at first
    assert "not distinguishable" in cells[1][3]


def test_runs_are_compared_at_the_fewest_samples_that_one_has() -> None:
    three, two = [[YES, NO, NO], [NO, NO, NO]], [[YES, NO], [NO, NO]]
    table = coverage_table(recorded(base=[three] * 3, other=[two] * 3), "test")
    assert table is not None
    assert table.title == "Coverage: pass@2"
    assert [row[1].text for row in table.rows] == ["0.333", "0.500"]  # 1 − C(2, 2) / C(3, 2) = 2/3 of one item in two


@pytest.mark.parametrize("verdicts", [[[YES], [NO]], [[None, YES], [NO, None]], []])
def test_one_sample_is_no_coverage(verdicts: list[list[bool | None]]) -> None:
    assert coverage_table(recorded(base=[verdicts]), "test") is None
