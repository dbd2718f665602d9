"""The figures' outcomes: by hand, against a script in plain torch that shares nothing with the bench, and printed."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.command.gradients import main
from evenkeel.trainer.lab.gradients.contributions import Recipe
from evenkeel.trainer.lab.gradients.figures import Figures, _estimated, figures
from evenkeel.trainer.lab.gradients.outcomes import frozen_move, gradient_norm_share, ratio, rose_share
from evenkeel.trainer.lab.gradients.strategies import named_strategies
from evenkeel.trainer.lab.statistics.intervals import StatisticsError
from scripts.research.update_figures import across
from tests.scripts.test_train import write_run
from tests.trainer.lab.gradients.test_bench import rows_of

COLD, RATE, CLIP = 0.15, 0.01, (0.98, 1.02)
"""The tiny model's tokens are of all quarters at this temperature; in the second pass ratios are clipped."""


def test_outcomes_by_hand():
    old = torch.tensor([[0.1, 0.25, 0.6], [0.2, 0.9, 0.8]])
    new = torch.tensor([[0.2, 0.25, 0.5], [0.3, 0.8, 0.9]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    advantages = torch.tensor([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])
    rose = rose_share(old, new, advantages, mask)
    assert rose.tolist() == [[1, 1, 0, 0, 0], [4, 1, 1, 1, 1]]
    part = torch.tensor([[0.3, 0.25, 0.65], [0.2, 0.85, 0.5]])
    frozen = mask * (old >= 0.25)
    shares = ratio(frozen_move(old, part, new, frozen)).tolist()
    assert shares == pytest.approx([0.5, torch.nan, torch.nan, 0.5, 0.5], rel=1e-5, nan_ok=True)
    norms = torch.tensor([5.0, 4.0, 3.0, 0.0, 1.0])
    assert ratio(gradient_norm_share(norms)).tolist() == pytest.approx([1.0, 0.8, 0.6, 0.0, 0.2])


def test_seeds_are_paired():
    """Differences .1, .2, .3: ± t(2) · .1 / √3; the seeds themselves differ by more."""
    found = []
    for before, after in ((0.1, 0.2), (0.5, 0.7), (0.3, 0.6)):
        values = {"grpo": [before, None, 0, 0, 0], "lopti": [after, None, 0, 0, 0]}
        rows = [{"strategy": name, "outcome": "rose_share", "values": each} for name, each in values.items()]
        found.append({"rows": rows})
    gains = across(found, "rose_share", "lopti", "grpo")
    assert [*gains] == ["all", "¼–½", "½–¾", "¾–1"]
    gain = gains["all"]
    assert (gain.value, gain.high - gain.value) == pytest.approx((0.2, 4.302653 * 0.1 / 3**0.5))
    assert across(found, "rose_share", "grpo")["all"].value == pytest.approx(0.3)
    for each in found[1:]:
        del each["rows"][1]
    for names in (("lopti", "grpo"), ("grpo", "lopti"), ("lopti",)):
        with pytest.raises(StatisticsError, match=r"\[1\].*lopti"):
            across(found, "rose_share", *names)


def test_intervals_by_hand():
    """Without each batch: the value 1 is 1, ½, 2; its difference −½ to the baseline's 1½ is −1, −1¼, 1¼.

    Their squared distances from their means, 7/6 and −⅓, add up to 7/6 and 91/24, of which ⅔ is s².
    """
    sums = torch.tensor([[[1.0], [1.0]], [[3.0], [1.0]], [[1.0], [3.0]]])
    baseline = torch.tensor([[[1.0], [2.0]], [[2.0], [2.0]], [[6.0], [2.0]]])
    wanted = [1.0, 4.302653 * (7 / 9) ** 0.5, -0.5, 4.302653 * (91 / 36) ** 0.5]
    assert [each[0] for each in _estimated(sums, baseline)] == pytest.approx(wanted)


@pytest.fixture(scope="module")
def batches(model: Any) -> list[list[dict[str, Any]]]:
    """`rows_of`, written by the model; a tool wrote the second token of each row."""
    found = [rows_of(seed, seed, groups=2) for seed in range(2)]
    torch.manual_seed(0)
    for place, row in enumerate(found[0] + found[1]):
        if place % 4 == 0:
            prompt = torch.tensor([row["prompt_ids"]] * 4)
            written = model.generate(prompt, do_sample=True, temperature=COLD, max_new_tokens=9, eos_token_id=None)
        length = len(row["completion_ids"]) + 3
        row["completion_ids"] = written[place % 4, 3 : 3 + length].tolist()
        row["mask"] = [token != 1 for token in range(length)]
    return found


def run(model: Any, batches: Any, names: str, clip: Any = CLIP, loss: str = "dapo") -> Figures:
    recipe = Recipe(4, COLD, {"digits": 1.0}, 10, loss, 8, RATE, clip)
    return figures(batches, model, recipe, named_strategies(names))


def probabilities(model: Any, rows: Any) -> torch.Tensor:
    """(M,) of all tokens that count; every prompt has three tokens."""
    ids = pad_sequence([torch.tensor(row["prompt_ids"] + row["completion_ids"]) for row in rows], batch_first=True)
    counted = pad_sequence([torch.tensor(row["mask"]) for row in rows], batch_first=True)
    logps = (model(ids).logits[:, 2:-1] / COLD).log_softmax(-1)
    return logps.gather(2, ids[:, 3:, None]).squeeze(2)[counted].exp()


def script(model: Any, rows: Any, alpha: float, eta: float) -> dict[str, torch.Tensor]:
    """Outcome → numerators and denominators on one batch: AR with α, Lopti with η in two passes; 0 and 0 are GRPO."""
    policy = copy.deepcopy(model).double()
    old = probabilities(policy, rows).detach()
    rewards = torch.tensor([row["reward"] for row in rows]).view(-1, 4)
    scaled = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    counts = torch.tensor([sum(row["mask"]) for row in rows])
    advantages = scaled.flatten().repeat_interleave(counts).double()

    def update(passes: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        moved = copy.deepcopy(policy)
        optimizer = torch.optim.SGD(moved.parameters(), RATE)
        for tokens in passes:
            optimizer.zero_grad()
            ratios = probabilities(moved, rows) / old
            gains = torch.min(ratios * advantages, ratios.clamp(*CLIP) * advantages)
            loss = -(gains * (alpha * old + 1 - alpha))[tokens].sum() / len(old)
            loss.backward()
            optimizer.step()
        norm = torch.cat([weights.grad.flatten() for weights in moved.parameters()]).norm()
        return probabilities(moved, rows).detach(), norm

    every = torch.ones_like(old, dtype=torch.bool)
    sets = [every, *((old >= low) & (old < low + 0.25) for low in (0, 0.25, 0.5, 0.75))]
    alone = [update([tokens]) for tokens in sets]
    new = update([old < eta, old >= eta] if eta else [every])[0]
    right = [tokens & (advantages > 0) for tokens in sets]
    found: dict[str, list[tuple[Any, Any]]] = {
        "token_share": [(tokens.sum(), len(old)) for tokens in sets],
        "advantage_size": [(advantages[tokens].abs().sum(), tokens.sum()) for tokens in sets],
        "gradient_norm": [(norm, 1) for _, norm in alone],
        "gradient_norm_share": [(norm, alone[0][1]) for _, norm in alone],
        "rose_share": [((new > old)[tokens].sum(), tokens.sum()) for tokens in right],
    }
    for name, by, trained in (
        ("", new, ~every),
        ("_by_rare", alone[1][0], sets[1]),
        ("_by_sure", alone[4][0], sets[4]),
    ):
        moves, whole, frozen = (by - old).abs(), (new - old).abs(), [tokens & ~trained for tokens in sets]
        found[f"move{name}"] = [(moves[tokens].sum(), tokens.sum()) for tokens in sets]
        found[f"frozen_move{name}"] = [(moves[tokens].sum(), whole[tokens].sum()) for tokens in frozen]
    return {name: torch.tensor(pairs, dtype=torch.float64) for name, pairs in found.items()}


def test_figures_equal_an_independent_script(model: Any, batches: Any):
    found = run(model, batches, "adv_reweight+lopti")
    assert len(found.rows) == 20
    ours = {"grpo": (0.0, 0.0), "adv_reweight+lopti": (0.2, 0.4)}
    theirs = {name: [script(model, rows, *options) for rows in batches] for name, options in ours.items()}

    def value(name: str, outcome: str) -> torch.Tensor:
        over, under = sum(each[outcome] for each in theirs[name]).unbind(1)
        return over / under

    for row in found.rows:
        wanted = value(row.strategy, row.outcome)
        assert row.values == pytest.approx(wanted.tolist(), rel=1e-5, abs=1e-5, nan_ok=True)
        gain = wanted - value("grpo", row.outcome)
        assert row.differences == pytest.approx(gain.tolist(), rel=1e-5, abs=1e-5, nan_ok=True)
    assert (value("grpo", "token_share") > 0.03).all()


def test_a_second_pass_that_cannot_be_clipped_is_named(model: Any, batches: Any):
    found = run(model, batches[:1], "lopti", clip=None)
    assert {row.strategy for row in found.rows} == {"grpo"}
    assert "trl.importance_sampling_level" in found.absent["lopti"]
    with pytest.raises(Refusal, match="no rollout batch"):
        run(model, [], "grpo")
    with pytest.raises(PartError, match="vespo"):
        run(model, batches[:1], "lopti", loss="vespo")


@pytest.mark.slow
def test_a_configurations_policy_is_sampled_and_replayed(tiny_model: Path, tmp_path: Path, capsys):
    file = write_run(tmp_path, tiny_model)
    asked = ["--strategies", "rloo,adv_reweight+lopti", "--batches", "3", "--to", str(tmp_path)]
    assert main([str(file), *asked]) == 0
    found = json.loads((tmp_path / "gradients.json").read_text())
    assert [each["name"] for each in found["rows"][:3]] == ["grpo", "rloo", "adv_reweight+lopti"]
    assert (found["batches"], found["groups"]) == (3, 12)
    assert "| `rloo` |" in capsys.readouterr().out
    figures = ["--figures", "--strategies", "lopti", "--learning-rate", "0.5", "--batches", "3", "--to", str(tmp_path)]
    assert main([str(file), "seed=1", *figures]) == 0
    found = json.loads((tmp_path / "figures.json").read_text())
    assert {row["strategy"] for row in found["rows"]} == {"grpo", "lopti"}
    assert (found["learning_rate"], found["groups"]) == (0.5, 12)
    assert "| 3 | `rose_share` | `grpo` |" in capsys.readouterr().out
    assert "frozen_move_by_rare" in (tmp_path / "figures.svg").read_text()
    assert not (tmp_path / "run").exists()
    assert main([str(tmp_path), "--strategies", "grpo"]) == 2  # no run's directory
    adapter = shutil.copytree(tiny_model, tmp_path / "adapter")
    (adapter / "config.json").rename(adapter / "adapter_config.json")
    assert main([str(file), f"model.name_or_path={adapter}"]) == 2
    assert "evenkeel export" in capsys.readouterr().err
