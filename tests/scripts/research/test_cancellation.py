"""What the measurement of cancellation says of groups, and what it refuses; the runs themselves are the script's."""

from pathlib import Path

import pytest

from scripts.research.__main__ import main
from scripts.research.cancellation import (
    PRECISIONS,
    SharedPrefixes,
    UnmeasurableError,
    cancellation_table,
    parameter_table,
    shared_prefixes,
)


def test_the_shared_prefix_of_live_groups_alone_is_counted():
    alike_then_apart, dead, contained = [[1, 2, 3], [1, 2, 4]], [[7, 7], [7, 7]], [[5], [5, 6]]
    advantages = [1.0, -1.0, 0.0, 0.0, -1.0, 1.0]
    found = shared_prefixes([*alike_then_apart, *dead, *contained], advantages, 2)
    assert found == SharedPrefixes(live_groups=2, mean_length=1.5, shortest=1)  # (2 + 1) / 2
    assert shared_prefixes(dead, [0.0, 0.0], 2) == SharedPrefixes(0, 0.0, 0)


@pytest.mark.parametrize("table", [cancellation_table, parameter_table])
@pytest.mark.parametrize(("prompts", "rollouts"), [(0, 1), (6, 1), (4, 0)])
def test_batches_that_four_steps_cannot_share_are_refused(prompts, rollouts, table):
    with pytest.raises(UnmeasurableError, match=f"{rollouts} rollout batches of {prompts} prompts"):
        list(table(Path("configs/quickstart.yaml"), prompts=prompts, rollouts=rollouts))


@pytest.mark.slow
def test_in_the_gradient_of_the_parameters_bfloat16_cancels_to_its_rounding():
    rows = [line.split("|")[1:-1] for line in parameter_table(Path("configs/quickstart.yaml"), prompts=4, rollouts=1)]
    left = {(row[0].strip(" `"), row[1].strip()): float(row[2]) for row in rows[2:]}
    assert left["exchangeable", "float32"] < 1e-5
    assert 1e-5 < left["exchangeable", "bfloat16 weights"] < 2**-6
    assert min(left["grpo", precision] for precision in PRECISIONS) > 0.05


def test_the_command_line_says_what_is_refused_and_ends_with_2(capsys: pytest.CaptureFixture[str]):
    assert main(["cancellation", "--prompts", "6"]) == 2
    assert "6 prompts cannot be cut into four optimizer steps" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["cancelation"])
    assert "common_random_numbers" in capsys.readouterr().err
