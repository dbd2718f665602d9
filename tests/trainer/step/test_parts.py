"""Parts of a step, made of plain values and used without a trainer."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from trl import GRPOConfig

from evenkeel.trainer.evaluation import Decoding
from evenkeel.trainer.evaluation.judging import Answered
from evenkeel.trainer.step.evaluation import HeldOut
from evenkeel.trainer.step.options import Evaluation
from evenkeel.trainer.step.setup import Ranks
from tests.trainer.step.setups import setup_of


def test_the_second_of_two_ranks_takes_its_rows():
    ranks = Ranks(Accelerator(cpu=True))
    ranks.index, ranks.count = 1, 2
    assert ranks.own_share([0, 1, 2, 3, 4, 5]) == [3, 4, 5]
    everyone = torch.arange(12).view(4, 3)
    assert ranks.own_rows(everyone, torch.zeros(2, 2)).tolist() == [[6, 7], [9, 10]]  # rows 2 and 3, two tokens


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
    sizes = {"num_generations": 2, "per_device_train_batch_size": 2, "per_device_eval_batch_size": 2}
    args = GRPOConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none", **sizes)
    part = HeldOut(setup_of(args), options, {"right": right})

    def run_loop(loader: Any, _: Decoding) -> None:
        assert part.under_way is not None
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
    assert part.under_way is None
    np.random.random()
    part.evaluate([{"prompt": "a"}, {"prompt": "b"}], 3, run_loop)
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]
