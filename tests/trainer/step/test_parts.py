"""Every part of a step, made of plain values and used without a trainer.

What runs train with them is tested beside this file; here stands what a part needs, and what it gives back.
"""

import random
from collections import Counter, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from trl import GRPOConfig

from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.evaluation import Decoding
from evenkeel.trainer.evaluation.judging import Answered
from evenkeel.trainer.step.advantages import Advantages
from evenkeel.trainer.step.choices import Loaded
from evenkeel.trainer.step.evaluation import HeldOut
from evenkeel.trainer.step.loss import Loss
from evenkeel.trainer.step.microbatches import Microbatches, PlannedCut
from evenkeel.trainer.step.options import Evaluation, Schedule
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.rollout import Rollout
from evenkeel.trainer.step.scoring import Scoring
from evenkeel.trainer.step.setup import Batch, Position, Ranks
from tests.trainer.step.setups import setup_of

START = Position(0, 10, 0, 0)


@pytest.fixture
def ranks() -> Ranks:
    return Ranks(Accelerator(cpu=True))


@pytest.fixture
def args(tmp_path: Path) -> GRPOConfig:
    return config(tmp_path)


def config(folder: Any, **settings: Any) -> GRPOConfig:
    sizes = {"num_generations": 2, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    plain = {"use_cpu": True, "bf16": False, "report_to": "none", "loss_type": "dapo"}
    return GRPOConfig(str(folder), **{**sizes, **plain, **settings})


def rollout_of(batch: Batch, rewards: list[float], **columns: list[Any]) -> Rollout:
    rows = [{"prompt": "q", "reference": "r"} for _ in rewards]
    return Rollout(rows, batch, START, torch.tensor(rewards)[:, None], columns, lambda _: {})


def test_ranks():
    ranks = Ranks(Accelerator(cpu=True))
    assert (ranks.index, ranks.count, ranks.is_main, ranks.sharded) == (0, 1, True, False)
    assert ranks.any(True)
    assert not ranks.any(False)
    assert ranks.gathered_tokens(torch.tensor([[1, 2]]), 0).tolist() == [[1, 2]]
    ranks.index, ranks.count = 1, 2  # the second of two
    assert ranks.own_share([0, 1, 2, 3, 4, 5]) == [3, 4, 5]
    everyone = torch.arange(12).view(4, 3)
    assert ranks.own_rows(everyone, torch.zeros(2, 2)).tolist() == [[6, 7], [9, 10]]  # rows 2 and 3, two tokens


def test_schedule_and_position():
    """4 micro-batches a rollout batch, 2 an optimizer step, 2 passes: 4 · 1 · 2 = 8 train a rollout batch."""
    schedule, position = Schedule(4, 2, 1, 2), Position(5, 10, 11, 1)
    assert schedule.microbatches_per_rollout == 8
    assert not schedule.is_on_policy  # 4 optimizer steps
    assert Schedule(2, 4, 1, 1).is_on_policy  # two rollout batches make one
    assert schedule.place(11) == 3  # 11 mod 4
    assert schedule.pass_index(11) == 0  # (11 // 4) mod 2
    assert position.where == "at optimizer step 5"


def test_scoring_skips_the_old_policy_and_asks_for_the_reference(ranks: Ranks, args: GRPOConfig):
    """Of two calls in a rollout batch the first is π_old, which is not made; both were TRL's to ask for."""
    setup = setup_of(config(args.output_dir, beta=0.1, num_iterations=2), None, "skip_old_logps")
    scoring = Scoring(setup, Microbatches(setup, Counter()), Phases())
    ids, asked = torch.tensor([[2, 3, 4]]), []

    def score(model: Any, *_: Any, **__: Any) -> Any:
        asked.append(model)
        return torch.full((1, 2), -0.5), None, None

    with scoring.rollout():
        old = scoring(score, "policy", ids, torch.ones_like(ids), 2, is_training=True)[0]
        reference = scoring(score, "reference", ids, torch.ones_like(ids), 2, is_training=True)[0]
    assert asked == ["reference"]
    assert old.isnan().all()
    assert old.shape == (1, 2)
    assert reference.tolist() == [[-0.5, -0.5]]
    batch = {"old_per_token_logps": old, "importance_sampling_ratio": old.exp()}
    names = [f"sampling/importance_sampling_ratio/{each}" for each in ("mean", "min", "max")]
    names += [f"sampling/sampling_logp_difference/{each}" for each in ("mean", "max")]
    metrics = {name: [torch.nan] for name in names} | {names[0]: [1.0, torch.nan]}
    scoring.complete(batch, metrics, lambda _: {})
    assert batch == {}
    assert metrics == {names[0]: [1.0]}  # that of an earlier rollout batch stays


def test_advantages(ranks: Ranks, args: GRPOConfig):
    """Dr. GRPO: r − mean. Group one 1 − 0.5 and 0 − 0.5; group two is of equal rewards, and shares nothing then."""
    ids = torch.tensor([[5, 6], [5, 7], [5, 5], [5, 5]])
    batch = {"completion_ids": ids, "completion_mask": torch.ones_like(ids)}
    part = Advantages(setup_of(args, build_strategies("dr_grpo"), reward_weights=torch.tensor([0.5])))
    rollout = rollout_of(batch, [2.0, 0.0, 2.0, 2.0])  # with the weight 0.5: 1, 0, 1, 1
    signals, logs = part.signals(rollout), {"advantages": deque([9.0] * 4)}
    metrics = part.write_advantages(rollout, signals, logs)
    assert batch["advantages"].tolist() == [0.5, -0.5, 0, 0]
    assert list(logs["advantages"]) == [0.5, -0.5, 0, 0]
    assert metrics["groups/frac_dead"] == 0.5
    assert metrics["advantage/mean_abs"] == 0.25  # (0.5 + 0.5 + 0 + 0) / 4
    assert part.write_labels(rollout, signals).tolist() == [1, 1, 0, 0]
    assert batch["groups"].tolist() == [0, 0, 1, 1]


def test_planned_cut(ranks: Ranks, args: GRPOConfig):
    """Prompts of 2 tokens, completions of 4, 2, 4, 2: TRL's two micro-batches take 2 · 2 · (2 + 4) = 24 tokens, of
    like lengths they take 2 · (2 + 4) + 2 · (2 + 2) = 20. A row without advantage is left out."""
    loaded = Loaded(rope_type="default")  # of relative positions prompts may be trimmed
    cut = PlannedCut(setup_of(args, settings={"loaded": loaded}))

    def given(advantages: list[float]) -> list[Batch]:
        mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
        batch = {"prompt_ids": torch.full((2, 2), 3), "prompt_mask": torch.ones(2, 2).long(), "completion_mask": mask}
        return [{**batch, "completion_ids": mask * number, "advantages": torch.tensor(advantages)} for number in (7, 8)]

    long, short = cut.cut(given([1.0, -1.0]), 0)
    assert long["completion_ids"].tolist() == [[7] * 4, [8] * 4]
    assert short["completion_ids"].tolist() == [[7, 7], [8, 8]]
    assert [batch["loss_scale"] for batch in (long, short)] == [1.0, 1.0]
    assert sum(int(batch["all_tokens"]) for batch in (long, short)) == 12
    _, trained = cut.cut(given([0.0, 1.0]), 0)
    assert trained["completion_ids"].tolist() == [[7, 7], [8, 8]]


def test_loss(ranks: Ranks, args: GRPOConfig):
    """Weights α π + 1 − α at α = 0.5: 0.75 of a token of π_old = 0.5, 0.625 of one of 0.25. A becomes A · w."""
    strategies = build_strategies(token_weight={"name": "adv_reweight", "alpha": 0.5})
    loss = Loss(setup_of(args, strategies))
    probs = torch.tensor([[0.5, 0.25], [0.25, 0.5]])
    labels = {"groups": torch.tensor([0, 0]), "scored": torch.tensor([True, True]), "row_keys": torch.tensor([1, 2])}
    microbatch = {
        "completion_ids": torch.tensor([[5, 6], [6, 5]]),
        "completion_mask": torch.ones(2, 2).long(),
        **labels,
    }
    microbatch |= {"shared_prefix": torch.zeros(2).long(), "advantages": torch.tensor([1.0, -1.0])}
    microbatch["old_per_token_logps"] = probs.log()
    loss.start_rollout({}, torch.zeros(2).long(), step=0)
    loss.write_advantages(probs.log(), None)  # outside a loss nothing is written
    with loss.of(microbatch, START) as batch:
        loss.write_advantages(probs.log().requires_grad_(), None)
        trained = loss.finish(torch.tensor(2.0), batch, {}, is_last=True)
    torch.testing.assert_close(batch["advantages"], torch.tensor([[0.75, 0.625], [-0.625, -0.75]]))
    assert microbatch["advantages"].tolist() == [1, -1]  # the buffered one serves later passes
    assert trained == 2
    loss.shared_prefixes.finish_step(ranks.accelerator, loss.means)
    assert loss.means.read(ranks.accelerator)["token_weight/mean"] == pytest.approx(0.6875)  # (.75 + .625) / 2


def test_held_out(tmp_path: Path):
    """Two rows, two samples each: the first is right once, the second always: (1/2 + 1) / 2.

    Environments draw from any stream; every evaluation draws alike and leaves the training's streams as they are.
    """
    asked = Counter[str]()
    drawn: list[tuple[float, float]] = []

    def right(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
        verdicts = [text == "yes" for text in completions]
        log_extra("correct", verdicts)
        return [float(verdict) for verdict in verdicts]

    def generate(rows: list[dict[str, str]]) -> Answered:
        prompts = [row["prompt"] for row in rows]
        asked.update(prompts)
        drawn.append((random.random(), np.random.random()))
        texts = ["no" if prompt == "a" and place == 0 else "yes" for place, prompt in enumerate(prompts)]
        return Answered(prompts, texts, [[5, 1] for _ in prompts], [2 for _ in prompts], {})

    options = Evaluation(seed=7, decodings=[Decoding(samples=2)])
    part = HeldOut(setup_of(config(tmp_path, per_device_eval_batch_size=2)), options, {"right": right})

    def run_loop(loader: Any, _: Decoding) -> None:
        assert part.is_under_way
        for draws in loader:
            part.answer(draws, generate)

    torch.manual_seed(0)
    before, numpys = torch.get_rng_state(), str(np.random.get_state())
    metrics = part.evaluate([{"prompt": "a"}, {"prompt": "b"}], 3, run_loop)
    assert asked == {"a": 2, "b": 2}
    assert metrics["eval_test/avg@2"] == metrics["eval_reward"] == 0.75
    assert torch.equal(torch.get_rng_state(), before)
    assert str(np.random.get_state()) == numpys
    assert [(result.dataset, result.step, len(result.records)) for result in part.newest] == [("test", 3, 4)]
    assert not part.is_under_way
    np.random.random()
    part.evaluate([{"prompt": "a"}, {"prompt": "b"}], 3, run_loop)
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]
