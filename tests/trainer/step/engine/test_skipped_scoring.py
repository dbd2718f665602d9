"""π_old taken from the pass that trains: the gradient, the metrics and the weights of TRL's extra pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from evenkeel.trainer.algorithms.engine_ratio import engine_ratio
from tests.trainer.step.engine.conftest import Served
from tests.trainer.step.engine.transformers_server import TransformersServer
from tests.trainer.step.test_contract import ForwardPasses
from tests.trainer.step.test_trainer import ROWS, gradient
from tests.trainer.training import max_difference, moved, ours

SAMPLING = "sampling/"


@pytest.fixture(scope="module")
def both(served: Served, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same trainer twice: TRL's way, and without the extra pass."""
    trainers = []
    for skips in (False, True):
        strategies = {"skip_old_logps": skips, "engine": None, "token_weight": "adv_reweight"}
        trainer = served.trainer(tmp_path_factory.mktemp("both"), strategies, loss_type="dapo", temperature=0.7)
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        assert trainer.parts.scoring.skips_old == skips
        trainers.append(trainer)
    return trainers[0], trainers[1]


@pytest.fixture
def off_policy_engine(engine: TransformersServer) -> TransformersServer:
    """One that reports other probabilities than it should, so that no ratio is 1."""
    engine.raw_logprobs = True
    return engine


def gradients(trainers: tuple[Any, ...], engine: TransformersServer, **settings: Any) -> Iterator[torch.Tensor]:
    for trainer in trainers:
        engine.generator.manual_seed(3)
        vars(trainer).update(settings)
        vars(trainer.args).update(settings)
        yield gradient(trainer, trainer._generate_and_score_completions(ROWS))


@pytest.mark.parametrize(
    ("mode", "loss_type"),
    [
        ("token_truncate", "dapo"),
        ("token_truncate", "cispo"),
        ("token_mask", "grpo"),
        ("token_mask", "vespo"),
        ("sequence_truncate", "dapo"),
        ("sequence_mask", "grpo"),
    ],
)
def test_the_gradient_is_the_one_of_the_extra_pass(both, off_policy_engine, mode: str, loss_type: str):
    settings = {"vllm_importance_sampling_mode": mode, "loss_type": loss_type}
    low, high = "vllm_importance_sampling_clip_min", "vllm_importance_sampling_clip_max"
    slow, quick = gradients(both, off_policy_engine, **settings, **{low: 0.99, high: 1.01})
    assert (slow - quick).norm() <= 1e-6 * slow.norm()
    wide, again = gradients(both, off_policy_engine, **settings, **{low: 0.01, high: 100.0})
    assert (wide - again).norm() <= 1e-6 * wide.norm()
    assert (wide - slow).norm() > 1e-3 * slow.norm()  # the bounds, and so the ratio, are felt


def test_a_token_without_a_number_counts_as_in_trl():
    """NaN of the engine becomes a ratio of 1, and infinity of a float sum does not appear."""
    logps, engine = torch.tensor([[-1.0, -2.0, -3.0]]), torch.tensor([[-1.5, torch.nan, -9.0]])
    mask = torch.tensor([[1, 1, 0]])
    expected = torch.tensor([[torch.e**0.5, 1.0, 1.0]])
    torch.testing.assert_close(engine_ratio(logps, engine, mask, "token_truncate", None, None), expected)
    whole = engine_ratio(logps, engine, mask, "sequence_truncate", None, 1.2)
    assert whole.shape == (1, 1)
    assert whole.item() == pytest.approx(1.2)  # e^0.5 = 1.65 is above it
    assert engine_ratio(logps, engine, mask, "sequence_mask", None, 1.2).item() == 0.0
    assert engine_ratio(logps, engine, mask, "token_mask", 1.2, None).tolist() == [[pytest.approx(1.6487, 1e-4), 0, 0]]


def test_the_extra_pass_is_gone_and_the_metrics_stay(served: Served, engine, tmp_path: Path, monkeypatch: Any):
    """A whole training on planned micro-batches, several to a step: the same weights; only the reference is asked."""
    trained, without_gradient = {}, {}
    for skips in (False, True):
        engine.start()
        engine.raw_logprobs = True
        counted = ForwardPasses(monkeypatch)
        trained[skips] = ours(
            served.model,
            tmp_path,
            strategies={"skip_old_logps": skips, "microbatches": "planned", "verify_steps": 0},
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            optim="sgd",
            learning_rate=1.0,
            temperature=0.7,
            beta=0.1,
            max_steps=2,
            **served.settings,
        )
        assert counted.trained == 4
        without_gradient[skips] = counted.scored
    assert without_gradient[False] == 2 * without_gradient[True] > 0
    assert moved(trained[True], served.model) > 1e-2
    assert max_difference(trained[False], trained[True]) < 1e-5
    slow, quick = (trained[skips].state.log_history[0] for skips in (False, True))
    names = [name for name in slow if name.startswith(SAMPLING) and not name.endswith(("ratio/min", "ratio/max"))]
    assert len(names) == 3
    for name in names:
        assert quick[name] == pytest.approx(slow[name], rel=1e-4), name
