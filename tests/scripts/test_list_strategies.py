"""evenkeel strategies: every built-in strategy, without a model and without TRL."""

from evenkeel.trainer.algorithms.registry import KINDS, built_in
from evenkeel.trainer.command.strategies import main


def test_every_strategy_stands_in_one_line_with_its_source(capsys):
    assert main([]) == 0
    head, _, *lines = (
        [cell.strip(" `") for cell in line.split(" | ")] for line in capsys.readouterr().out.splitlines()
    )
    assert [cell.strip("| ") for cell in head] == ["kind", "name", "what", "source", "evidence"]
    listed = [(line[0].strip("| "), line[1]) for line in lines]
    assert listed == [(kind, name) for kind in KINDS for name in sorted(built_in(kind))]
    (adv_reweight,) = (line for line in lines if line[1] == "adv_reweight")
    assert adv_reweight[3].startswith("arXiv 2505.12929, Eq. 4.")
