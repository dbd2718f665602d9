"""Prompts computed once for the rows that share them: the same log-probabilities, entropies and gradients."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3ForCausalLM
from trl.trainer.utils import add_fused_lm_head

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.options import Speed
from evenkeel.trainer.step.packing import (
    Sharing,
    attention_length,
    packed_tokens,
    packing,
    pays,
    planned_cuts,
    prompt_numbers,
    visible,
    with_shared_prompts,
    work,
)
from evenkeel.trainer.step.rollout import loss_mask
from evenkeel.trainer.step.scoring import cheaper_passes
from evenkeel.trainer.step.trainer import model_facts
from tests.tiny_model import tiny_config
from tests.trainer.step.test_microbatches import check, trainer_with
from tests.trainer.training import made

CPU = torch.device("cpu")
SHARED = {"microbatches": "planned", "shared_prompts": True, "verify_steps": 0}
LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.lists(st.integers(0, 8), min_size=1, max_size=5)), min_size=1)


def policy(layers: int = 2) -> Any:
    """A random model of float32 with TRL's head."""
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(tiny_config(vocab_size=30, num_hidden_layers=layers))
    add_fused_lm_head(model, 0.7, outputs=("log_probs", "entropy"))
    return model


def scored(model: Any, call: Any, ids: Tensor, mask: Tensor, weights: Tensor) -> list[Tensor]:
    """Log-probabilities and entropies as TRL asks for them, and the gradient of their weighted sum."""
    labels, width = ids.masked_fill(mask == 0, -100), weights.shape[1]
    labels[:, :-width] = -100
    with nullcontext() if call is model else cheaper_passes(model, CPU):
        outputs = call(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    logps, entropies = outputs.log_probs[:, -width:], outputs.entropy[:, -width:]
    gradients = torch.autograd.grad((logps * weights).sum() + entropies.sum(), list(model.parameters()))
    return [logps, entropies, torch.cat([each.flatten() for each in gradients])]


@settings(max_examples=40, deadline=None)
@given(groups=LENGTHS, seed=st.integers(0, 9), recomputed=st.booleans())
def test_rows_in_one_sequence_are_scored_as_rows_of_their_own(groups, seed: int, recomputed: bool):
    """Any prompts, completions and order of rows, by rows and by a mask; rows of length 0 are laid out nowhere: 0."""
    generator = torch.Generator().manual_seed(seed)
    before, after = max(prompt for prompt, _ in groups), max(2, *(max(rows) for _, rows in groups))
    ids, mask, prompts, completions = [], [], [], []
    for prompt, rows in groups:
        shared = torch.randint(1, 30, (before,), generator=generator)
        for length in rows:
            ids.append(torch.cat([shared, torch.randint(1, 30, (after,), generator=generator)]))
            mask.append(
                (torch.arange(before + after) >= before - prompt) & (torch.arange(before + after) < before + length)
            )
            prompts.append(prompt)
            completions.append(length)
    order = torch.randperm(len(ids), generator=generator)
    ids, mask = torch.stack(ids)[order], torch.stack(mask)[order].long()
    if not any(completions):
        return
    numbers = prompt_numbers(ids[:, :before], mask[:, :before])
    packed = packing(numbers, torch.tensor(prompts)[order], torch.tensor(completions)[order], before, after)
    model = policy()
    weights = torch.randn(len(ids), after, generator=generator) * mask[:, before:]
    rows = scored(model, model, ids, mask, weights)
    if recomputed:
        model.train().gradient_checkpointing_enable({"use_reentrant": False})
    together = scored(model, with_shared_prompts(model, packed), ids, mask, weights)
    for mine, theirs in zip(together[:2], rows[:2], strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
    assert (together[2] - rows[2]).norm() <= 1e-5 * rows[2].norm()


def test_a_group_is_its_prompt_once_and_its_completions():
    """Prompt 7 8 9 of two rows with completions of 2 and 1 tokens: 7 8, then 9 a and 9, whose successors are scored."""
    packed = packing(torch.tensor([5, 5]), torch.tensor([3, 3]), torch.tensor([2, 1]), 3, 2)
    rows = torch.tensor([[7, 8, 9, 1, 2], [7, 8, 9, 3, 0]])
    assert rows.flatten()[packed.source].tolist() == [[7, 8, 9, 1, 9]]
    assert packed.owner.tolist() == [[0, 0, 1, 1, 2]]
    assert packed.scored.tolist() == [2, 3, 4]
    assert packed.target.tolist() == [0, 1, 2]  # of (2, 2): the first row's two tokens, the other's first
    assert visible(packed.owner)[0, 0].long().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]


def test_rows_that_begin_alike_in_padding_alone_do_not_share():
    ids, mask = torch.tensor([[0, 4], [0, 4], [3, 4]]), torch.tensor([[0, 1], [1, 1], [1, 1]])
    assert len(prompt_numbers(ids, mask).unique()) == 3


@pytest.mark.parametrize(("by_rows", "pairs"), [(False, 1649**2), (True, 49**2 + 1600 * 149)])
def test_what_16_completions_of_100_tokens_after_50_cost(by_rows: bool, pairs: int):
    lengths = torch.tensor([[50, 100]] * 16)
    found = packed_tokens(lengths, lengths[:, 1], torch.zeros(16).long(), by_rows=by_rows)
    assert [each[0, -1] for each in found] == [1649, pairs]


ROWS_OF_GROUPS = st.lists(
    st.tuples(st.integers(1, 40), st.lists(st.integers(0, 30), min_size=4, max_size=4)), min_size=4, max_size=4
)


@settings(max_examples=60, deadline=None)
@given(
    first=ROWS_OF_GROUPS,
    second=ROWS_OF_GROUPS,
    budget=st.integers(60, 600),
    context=st.sampled_from([20.0, 1e9]),
    by_rows=st.booleans(),
)
def test_a_plan_with_shared_prompts_trains_every_row_once_within_the_budget_for_less(
    first, second, budget, context, by_rows: bool
):
    lengths = torch.tensor([[(p, c) for p, rows in groups for c in rows] for groups in (first, second)])
    numbers = torch.arange(4).repeat_interleave(4).expand(2, 16)
    options: dict[str, Any] = {"num_microbatches": 4, "budget": budget, "units_each": 4}
    plan = planned_cuts(lengths, sharing=Sharing(lengths[:, :, 1], numbers, context, by_rows), **options)
    assert [len(units) for units in plan[0]] == [len(units) for units in plan[1]]
    rows_alone = planned_cuts(lengths, **options)
    for rank, cut in enumerate(plan):
        trained = sorted(unit for units in cut for unit in units if unit >= 0)
        assert trained == [unit for unit, (_, completion) in enumerate(lengths[rank].tolist()) if completion > 0]
    if plan != rows_alone:
        cost, most = _work(plan, lengths, numbers, context, by_rows=by_rows)
        apart, most_apart = _work(rows_alone, lengths, numbers, context)
        assert most <= budget
        assert cost <= apart or most_apart > budget


def _work(
    plan: list[list[list[int]]], lengths: Tensor, numbers: Tensor, context: float, *, by_rows: bool | None = None
) -> tuple[float, int]:
    """What the micro-batches cost, each on the rank with the most, shared where that pays unless ``by_rows`` is
    ``None``; the most tokens of one."""
    total, most = 0.0, 0
    for cut in zip(*plan, strict=True):
        costs = [0.0]
        for rank, units in enumerate(cut):
            rows = lengths[rank][real := [unit for unit in units if unit >= 0]]
            if not real:
                continue
            width = rows[:, 0].max() + rows[:, 1].max()
            tokens, pairs = len(units) * width, len(units) * width**2
            cost = work(tokens, pairs, context)
            owner = packing(numbers[rank][real], rows[:, 0], rows[:, 1], 40, 30).owner
            seen = (owner[:, None] == owner[:, :, None]) | ((owner[:, :, None] > 0) & (owner[:, None] == 0))
            seen = seen & (owner >= 0)[:, None] if by_rows else torch.ones_like(seen)
            shared = work(torch.tensor(owner.numel()), seen.sum(), context)
            if by_rows is not None and pays(shared, cost):
                tokens, cost = owner.numel(), shared
            most = max(most, int(tokens))
            costs.append(float(cost))
        total += max(costs)
    return total, most


def test_attention_costs_as_much_as_the_layers_at_the_length_that_is_computed():
    """Of policy(): q, o 2 · 32 · 32, k, v 2 · 32 · 16, MLP 3 · 32 · 64 weights, each two operations a token; scores and
    their sum take 4 · 32 a token and token of context."""
    assert attention_length(policy().config) == (2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64)) / (4 * 32)


CASES = [
    ("grpo", {}, {"beta": 0.04, "num_iterations": 2}),
    ("bnpo", {}, {}),
    ("dapo", {"token_weight": "adv_reweight"}, {"gradient_checkpointing": True}),
    ("dapo", {"advantage": "exchangeable", "keep_groups": "forward"}, {}),
    ("dapo", {"update_schedule": {"name": "lopti", "eta": 0.05}}, {"beta": 0.04}),
]


@pytest.mark.parametrize(("loss_type", "strategies", "others"), CASES)
def test_the_gradient_is_that_of_trls_cut(tiny_model, tmp_path: Path, loss_type, strategies, others):
    trainer = trainer_with(tiny_model, tmp_path, {**SHARED, **strategies}, loss_type=loss_type, **others)
    packed = watch_packing(trainer)
    check(trainer, fewer=1.0)
    assert packed
    assert trainer.parts.microbatches.planner.by_rows != trainer.args.gradient_checkpointing  # both on a CPU


def watch_packing(trainer: Any) -> list[Any]:
    """Layouts of the micro-batches that are planned from now on."""
    found: list[Any] = []
    planner = trainer.parts.microbatches.planner
    cut = planner.cut

    def watched(*arguments: Any) -> Any:
        planned = cut(*arguments)
        for batch in planned:
            if "packing" in batch:
                found.append(batch["packing"])
                counted = loss_mask(batch).flatten().nonzero().squeeze(1)
                assert set(counted.tolist()) <= set(found[-1].target.tolist())  # what counts is computed
        return planned

    planner.cut = watched
    return found


@pytest.mark.parametrize(("shared", "share"), [(True, 0.6), (False, 0.85)])
def test_the_policy_before_and_the_reference_are_scored_the_same_from_fewer_tokens(
    tiny_model, tmp_path: Path, *, shared: bool, share: float
):
    options = {**SHARED, "shared_prompts": shared}
    trainer = trainer_with(tiny_model, tmp_path, options, num_iterations=2, beta=0.04)
    generator = torch.Generator().manual_seed(3)
    prompts = torch.randint(5, 24, (4, 12), generator=generator).repeat_interleave(4, 0)
    lengths = torch.randint(0, 13, (16, 1), generator=generator)
    missing = torch.randint(0, 9, (4, 1), generator=generator).repeat_interleave(4, 0)
    mask = torch.cat([torch.arange(12) >= missing, torch.arange(12) < lengths], dim=1).long()
    ids = torch.cat([prompts, torch.randint(5, 24, (16, 12), generator=generator)], dim=1)
    sizes: list[int] = []
    trainer.model.register_forward_hook(lambda m, a, k, o: sizes.append(k["input_ids"].numel()), with_kwargs=True)
    results, tokens = [], []
    for planner in (trainer.parts.microbatches.planner, None):
        trainer.parts.microbatches.planner = planner
        sizes.clear()
        with torch.no_grad():
            scored = trainer._get_per_token_logps_and_entropies(
                trainer.model, ids, mask, 12, batch_size=8, compute_entropy=True
            )
        results.append(scored[:2])
        tokens.append(sum(sizes))
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
    assert tokens[0] < share * tokens[1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attn_implementation": "eager"}, "attn_implementation 'eager' takes no mask"),
        ({"attention_dropout": 0.1}, "dropout"),
    ],
    ids=["eager", "dropout"],
)
def test_a_model_that_cannot_share_computes_each_rows_prompt(tiny_model, tmp_path: Path, change, reason: str):
    model = AutoModelForCausalLM.from_pretrained(tiny_model, **change)
    model.generation_config.min_p = 0.1
    given = {**SHARED, "processing_class": AutoTokenizer.from_pretrained(tiny_model)}
    with pytest.warns(UserWarning, match=f"shared_prompts stays TRL's: .*{reason}"):
        trainer = made(RLVRTrainer, model, tmp_path, strategies=given)
    assert trainer.parts.microbatches.planner is not None
    assert trainer.parts.microbatches.planner.attention_length is None
    assert model_facts(trainer, Speed(), trainer.parts.ranks).sampling["min_p"] == 0.1  # TRL leaves it to the model
