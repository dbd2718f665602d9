"""What a run file means is made when it is asked for, once; what is refused says so and is no less refused again."""

from pathlib import Path

import pytest

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.run import experiment as module
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT

QUICKSTART = ROOT / "configs" / "quickstart.yaml"
MADE = ("verifiers", "strategies", "rows", "plan", "args", "tokenizer", "reward_functions")


def test_only_what_is_asked_for_is_made():
    no_model = Experiment.of_file(QUICKSTART, ["model.name_or_path=no/such-model", "data.train.max_rows=8"])
    assert set(vars(no_model)) == {"config", "folder", "processes"}
    assert len(no_model.rows["train"]) == 8
    assert set(vars(no_model)) == {"config", "folder", "processes", "verifiers", "rows", "environments"}


def test_every_part_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    made: list[str] = []
    makers = ("build_verifier", "build_strategies", "load_tokenizer", "batch_plan", "grpo_config", "reward_functions")
    for name in makers:
        original = getattr(module, name)

        def counted(*given, name=name, original=original, **options):
            made.append(name)
            return original(*given, **options)

        monkeypatch.setattr(module, name, counted)
    run = Experiment.of_file(QUICKSTART, [f"output_dir={tmp_path}", "data.train.max_rows=8"])
    for _ in range(2):
        for part in MADE:
            assert getattr(run, part) is getattr(run, part)
    assert sorted(made) == sorted(makers)
    assert run.trainer.strategies is run.strategies
    assert sorted(made) == sorted(makers)


@pytest.mark.parametrize("beside", [{"advantage": "rloo"}, {"keep_groups": "step"}, {"prompt_sampler": "dynamic"}])
def test_strategies_that_would_have_no_effect_beside_built_ones_are_refused(beside: dict[str, str]):
    with pytest.raises(TypeError, match="would have no effect"):
        RLVRTrainer("no/such-model", strategies=build_strategies(), **beside)
