"""The shape of a step: one class on TRL's, and parts that do not know it."""

import functools
import types
from pathlib import Path
from typing import Any

import pytest
from trl import GRPOTrainer

from evenkeel.rewards import RewardFunction, build_verifier
from evenkeel.rewards.noise import RewardNoise
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation import Decoding
from evenkeel.trainer.step import choices
from evenkeel.trainer.step.options import Engine, Evaluation, Guards, Speed
from tests.trainer.training import made


@pytest.fixture(scope="module")
def everything(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> RLVRTrainer:
    """A trainer with every part that needs no vLLM."""
    folder = tmp_path_factory.mktemp("everything")
    reward = RewardFunction(build_verifier("exact_match"), "text", noise=RewardNoise(false_positive=0.1))
    parts: dict[str, Any] = {"advantage": "ibpo", "revision": {"references": 2}, "token_weight": "adv_reweight"}
    parts |= {"update_schedule": "lopti", "prompt_sampler": "difficulty", "engine": Engine()}
    parts |= {"speed": Speed(microbatches="planned", generation="compact", common_random_numbers=True)}
    parts |= {"evaluation": Evaluation(0, [Decoding()]), "guards": Guards(folder / "faults")}
    trainer: RLVRTrainer = made(RLVRTrainer, tiny_model, folder, reward=reward, strategies=parts, loss_type="dapo")
    return trainer


def test_the_only_class_of_ours_is_the_trainer():
    ours = [kind for kind in RLVRTrainer.__mro__ if kind.__module__.startswith("evenkeel.trainer")]
    assert ours == [RLVRTrainer]
    assert RLVRTrainer.__bases__ == (GRPOTrainer,)


def reached(start: Any) -> dict[int, tuple[Any, str]]:
    """Everything that ``start``'s attributes lead to through objects, containers, functions and bound methods of ours;
    each with the way to it. What a library's object holds is its own affair."""
    found: dict[int, tuple[Any, str]] = {}
    waiting = [(start, type(start).__name__)]
    while waiting:
        value, way = waiting.pop()
        if id(value) in found:
            continue
        found[id(value)] = value, way
        if isinstance(value, types.MethodType):
            waiting.append((value.__self__, f"{way}.__self__"))
        elif isinstance(value, types.FunctionType):
            cells = value.__closure__ or ()
            waiting += [(cell.cell_contents, f"{way} (closure)") for cell in cells if cell != types.CellType()]
        elif isinstance(value, functools.partial):
            waiting += [(each, f"{way} (partial)") for each in (value.func, *value.args, *value.keywords.values())]
        elif isinstance(value, dict):
            waiting += [(each, f"{way}[{key!r}]") for key, each in value.items()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += [(each, f"{way}[…]") for each in value]
        elif type(value).__module__.startswith("evenkeel.trainer."):
            waiting += [(each, f"{way}.{name}") for name, each in vars(value).items()]
    return found


def test_no_part_reaches_the_trainer(everything: RLVRTrainer):
    found = reached(everything.parts)
    assert len(found) > 100
    assert id(everything) not in found, found[id(everything)][1]
    assert any(isinstance(value, choices.Strategies) for value, _ in found.values())
