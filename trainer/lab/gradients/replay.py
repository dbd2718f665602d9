"""Score recorded rollout batches at one policy's weights, and differentiate them for all strategies at once."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from evenkeel.errors import Refusal
from evenkeel.trainer.algorithms.contract import TURN_COLUMNS
from evenkeel.trainer.algorithms.turns import turn_column
from evenkeel.trainer.lab.gradients.contributions import Recipe, ReplayedBatch
from evenkeel.trainer.lab.gradients.moments import basis
from evenkeel.trainer.lab.gradients.sketch import CountSketch
from evenkeel.trainer.lab.rollouts.tokens import completions_of, padded

Row = dict[str, Any]


def replayed(rows: Sequence[Row], recipe: Recipe, model: Any) -> ReplayedBatch:
    """The rows of one recorded batch as tensors, scored by ``model``.

    Raises:
        Refusal: a group is incomplete.
    """
    size = recipe.group_size
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    if any(len(group) != size or len({row["group"] for row in group}) > 1 for group in groups):
        raise Refusal(
            f"Batch {rows[0]['batch']} does not consist of whole groups of trl.num_generations = {size} rows."
        )
    completion_ids, mask = completions_of(rows)
    width = completion_ids.shape[1]
    prompts = [list(group[0]["prompt_ids"]) for group in groups]
    scores = []
    with torch.no_grad():
        for prompt, ids, group in zip(prompts, completion_ids.split(size), groups, strict=True):
            longest = max(len(row["completion_ids"]) for row in group)
            distribution = next_tokens(model, prompt, ids[:, :longest], recipe.temperature)
            logps = distribution.gather(2, ids[:, :longest, None]).squeeze(2)
            probs = distribution.exp()
            found = (logps, -(probs * distribution).sum(2), (probs**2).sum(2))
            scores.append([torch.nn.functional.pad(each, (0, width - longest)) for each in found])
    logps, entropies, sum_pi_squared = (torch.cat(parts) for parts in zip(*scores, strict=True))
    weights = recipe.reward_weights
    return ReplayedBatch(
        rewards=numbers_of(rows, "reward"),
        correct=numbers_of(rows, "correct"),
        rewards_per_function=torch.stack([numbers_of(rows, f"rewards/{name}") for name in weights], dim=1),
        reward_weights=torch.tensor(list(weights.values())),
        prompt_ids=prompts,
        completion_ids=completion_ids,
        mask=mask,
        logps=logps,
        entropies=entropies,
        group_size=size,
        step=rows[0]["step"],
        max_steps=recipe.max_steps,
        columns=_columns(rows, mask),
        sum_pi_squared=sum_pi_squared,
    )


def group_gradients(
    batch: ReplayedBatch, contributions: Tensor, model: Any, recipe: Recipe, sketch: CountSketch
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each group (coefficients (S, r), jacobian (r, D)): its S gradients are their product.

    Ascent directions: ``Σ_{i,t} C_{i,t} ∇ log π``. A group has one forward pass, and as many backward passes as a
    `basis` of its ``contributions`` (S, N, T) has rows; none where nothing contributes.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    size = batch.group_size
    for place, prompt in enumerate(batch.prompt_ids):
        rows = slice(place * size, (place + 1) * size)
        counted = contributions[:, rows].any(0).any(0).nonzero()
        length = int(counted.max()) + 1 if len(counted) else 0  # later tokens change no gradient
        coefficients, directions = basis(contributions[:, rows, :length].flatten(1))
        if not len(directions):
            yield coefficients, torch.zeros(0, sketch.length)
            continue
        ids = batch.completion_ids[rows, :length]
        scored = next_tokens(model, prompt, ids, recipe.temperature)
        logps = scored.gather(2, ids[:, :, None]).squeeze(2)
        yield coefficients, torch.cat(list(_gradients(logps, directions, parameters, sketch)))


def _gradients(
    logps: Tensor, directions: Tensor, parameters: Sequence[Tensor], sketch: CountSketch
) -> Iterator[Tensor]:
    """(1, D) for each of the directions (r, R·T): ``∇ Σ d · logps`` (R, T)."""
    for number, direction in enumerate(directions):
        weights = direction.view_as(logps).to(logps.dtype)
        keep = number < len(directions) - 1
        made = torch.autograd.grad(logps, parameters, weights, retain_graph=keep, allow_unused=True)
        pairs = zip(made, parameters, strict=True)
        yield sketch([torch.zeros_like(p) if g is None else g for g, p in pairs])[None]


def next_tokens(model: Any, prompt: Sequence[int], ids: Tensor, temperature: float) -> Tensor:
    """(G, T, V) log-probabilities of the next tokens, at the sampling temperature.

    All rows have the same prompt, and padding comes after the tokens that count: no attention mask is needed.
    """
    start = torch.tensor(prompt).expand(len(ids), -1)
    seen = torch.cat([start, ids], dim=1).to(model.device)
    logits = model(seen, logits_to_keep=ids.shape[1] + 1).logits[:, :-1]
    distribution: Tensor = (logits / temperature).log_softmax(-1).to(ids.device)
    return distribution


def numbers_of(rows: Sequence[Row], name: str) -> Tensor:
    """(N,) the numbers recorded under ``name``; NaN where there is none."""
    return torch.tensor([torch.nan if row.get(name) is None else float(row[name]) for row in rows])


def _columns(rows: Sequence[Row], mask: Tensor) -> dict[str, Tensor]:
    """Other values that were logged in every row: numbers, `TURN_COLUMNS`, and those of revisions."""
    logged = [json.loads(row["others"] or "{}") for row in rows]
    names = [name for name in logged[0] if all(isinstance(each.get(name), int | float) for each in logged)]
    of_turns = [name for name in TURN_COLUMNS if all(name in each for each in logged)]
    columns = {
        **{name: torch.tensor([float(each[name]) for each in logged]) for name in names},
        **{name: turn_column(name, [each[name] for each in logged], mask) for name in of_turns},
    }
    if all({"repair", "edited"} <= each.keys() for each in logged):
        edited = padded([each["edited"] for each in logged])
        shorter = mask.shape[1] - edited.shape[1]
        columns["edited"] = F.pad(edited, (0, shorter))
    return columns
