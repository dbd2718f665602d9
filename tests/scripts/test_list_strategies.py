"""evenkeel strategies: every built-in strategy, without a model and without TRL."""

from evenkeel.trainer.algorithms.registry import KINDS, built_in
from evenkeel.trainer.command.strategies import main


def test_every_strategy_stands_in_one_line_with_its_source(capsys):
    assert main([]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["kind", "name", "what", "source", "evidence"]
    listed = [tuple(line.split()[:2]) for line in lines]
    assert listed == [(kind, name) for kind in KINDS for name in sorted(built_in(kind))]
    adv_reweight = next(line for line in lines if " adv_reweight " in line)
    assert "arXiv 2505.12929, Eq. 4." in adv_reweight
    assert adv_reweight.index("arXiv 2505.12929, Eq. 4.") == head.index("source")
