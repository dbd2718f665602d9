"""evenkeel train --list-strategies: every built-in strategy, without a model and without TRL."""

import subprocess
import sys

from evenkeel.trainer.algorithms.registry import KINDS, built_in
from evenkeel.trainer.command.train import main
from tests.paths import ROOT


def test_every_strategy_stands_in_one_line_with_its_source(capsys):
    assert main(["--list-strategies"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["kind", "name", "what", "source", "evidence"]
    listed = [tuple(line.split()[:2]) for line in lines]
    assert listed == [(kind, name) for kind in KINDS for name in sorted(built_in(kind))]
    adv_reweight = next(line for line in lines if " adv_reweight " in line)
    assert "arXiv 2505.12929, Eq. 4." in adv_reweight
    assert adv_reweight.index("arXiv 2505.12929, Eq. 4.") == head.index("source")


def test_the_list_needs_neither_trl_nor_transformers():
    code = "import sys, evenkeel.trainer.command.train as t; t.main(['--list-strategies']); "
    code += "print({'trl', 'transformers'} & {*sys.modules})"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "set()"
