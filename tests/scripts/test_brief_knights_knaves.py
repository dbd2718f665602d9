"""Brief demonstrations of Knights & Knaves: right where careful, of many lengths, on puzzles that no two sets share."""

import pytest

from evenkeel.rewards.generators.knights_knaves.canonical import canonical_statements
from evenkeel.rewards.generators.rows import knights_knaves
from evenkeel.rewards.verifiers.knights_knaves import parse_statements
from evenkeel.trainer.run.config import load_config
from scripts.tiny_policy.tasks import TASKS
from tests.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "different"),
    [
        ("knights_knaves_two", "docket_knights_two_base", [32, 48, 112]),  # each under eight namings
        ("knights_knaves_three", "docket_knights_three_base", [256, 1280, 6000]),
        ("knights_knaves_three", "laptop_knights_base", [256, 1280, 6000]),
    ],
)
def test_a_run_file_trains_on_puzzles_that_the_warm_up_has_under_no_names(
    name: str, file: str, different: list[int]
) -> None:
    task, data = TASKS[name](), load_config(ROOT / f"configs/sweeps/{file}.yaml").data
    sets = [task.held_out["knights_knaves"], task.pool, task.warm_up]
    seen = [
        {canonical_statements(parse_statements(each.reference["statements"])) for each in puzzles} for puzzles in sets
    ]
    assert [len(puzzles) for puzzles in seen] == different
    assert len(set().union(*seen)) == sum(different)

    options = [{**source.generator} for source in (data.train, data.test, data.test)]
    options[2]["part"] = "train"  # as the sweep tunes
    train, test, tuning = (
        knights_knaves(**{name: value for name, value in each.items() if name != "name"}) for each in options
    )
    assert [each["prompt"] for each in test] == [each.question for each in sets[0]]
    assert [each["prompt"] for each in tuning + train] == [each.question for each in task.pool]
