"""What a run file means is made when it is asked for, once; what is refused says so and is no less refused again."""

import pytest

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT

QUICKSTART = ROOT / "configs" / "quickstart.yaml"


@pytest.mark.parametrize("beside", [{"advantage": "rloo"}, {"keep_groups": "step"}, {"prompt_sampler": "dynamic"}])
def test_strategies_that_would_have_no_effect_beside_built_ones_are_refused(beside: dict[str, str]):
    with pytest.raises(TypeError, match="strategies="):
        RLVRTrainer("no/such-model", strategies=build_strategies(), **beside)


@pytest.mark.parametrize(
    ("updates", "processes", "cut"),
    [(1, 2, "by_rank"), (2, 1, "over_all_ranks"), (2, 2, "over_all_ranks"), (8, 4, "by_rank")],
)
def test_rows_are_cut_over_all_ranks_where_each_rank_has_some_for_every_update(updates: int, processes: int, cut: str):
    rows = ["algorithm.prompts_per_rollout=4", f"algorithm.sequences_per_update={32 // updates}"]
    group = [
        "num_processes=null",
        "trl.num_generations=8",
        "trl.per_device_train_batch_size=1",
        "algorithm.keep_groups=step",
    ]
    assert Experiment.of_file(QUICKSTART, [*rows, *group], processes=processes).cut == cut
