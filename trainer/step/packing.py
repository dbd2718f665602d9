"""Rows of one prompt in one sequence: ``[prompt, completion 1, …, completion k]``.

Every token keeps the position that it has in its row and attends to the prompt and its own completion, up to itself.
Log-probabilities, entropies and gradients are those of the rows, up to the order of summation.

Each completion begins with a copy of the prompt's last token, which predicts its first; its own last token predicts
nothing and is left out. With prompts of P tokens and completions of n₁ … n_k that is ``P − 1 + Σ n`` tokens instead of
``Σ (P + n)``. SDPA computes all M² pairs of a packed sequence of M tokens; on a CPU those of two rows are left out.

The other functions plan which rows go into which micro-batch, so that little is padding: pure functions of lengths.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import trl.trainer.utils as trl_utils
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PretrainedConfig, PreTrainedModel
from transformers.integrations import sdpa_attention
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from evenkeel.trainer.step.setup import temporarily

_CANDIDATES = 512
"""Largest number of places at which a cut is tried: the search is quadratic, and more places gain next to nothing."""
_NEVER = 2**62
LEAST_GAIN = 1.3
"""Prompts are shared where the estimated work, LM head left out, falls by this factor. Measured: a factor of 1.44 made
steps 1.18 times as fast, one of .99 1.03 times (docs/run_file.md)."""


@dataclass(frozen=True)
class Sharing:
    """The data, other than lengths, of units whose rows may share prompts.

    Attributes:
        totals: completion tokens of each unit of each rank, summed over its rows.
        prompts: number of each unit's prompt, the same for the same prompt of one rank.
        attention_length: see `evenkeel.trainer.step.packing.attention_length`.
        by_rows: whether attention of packed sequences is `attention_by_rows`.
    """

    totals: Int[Tensor, "R U"]
    prompts: Int[Tensor, "R U"]
    attention_length: float
    by_rows: bool = False


def work(tokens: Tensor, pairs: Tensor, attention_length: float) -> Tensor:
    """``tokens + pairs / attention_length``, rounded: the cost of a micro-batch in units of a token without attention;
    ``pairs`` of tokens are those that attention computes, the square of a sequence's length."""
    return (tokens + pairs / attention_length).round().long()


def pays(shared: Any, unshared: Any) -> Any:
    """Whether ``unshared`` work is at least `LEAST_GAIN` times the ``shared`` work; elementwise for tensors."""
    return shared * LEAST_GAIN <= unshared


def packed_tokens(
    lengths: Int[Tensor, "U 2"], totals: Int[Tensor, "U"], prompts: Int[Tensor, "U"], *, by_rows: bool
) -> tuple[Int[Tensor, "U V"], Int[Tensor, "U V"]]:
    """Tokens of units i … j where neighbors of one prompt share it, padding included, and the pairs that attention
    computes; 0 below i = j.

    ``G · max over prompts of (prompt − 1 + Σ completions)`` tokens, see `evenkeel.trainer.step.packing`, and each with
    all of its sequence; ``by_rows``: ``Σ (prompt − 1)² + Σ completion · (prompt − 1 + completion)`` pairs.
    """
    units = len(prompts)
    position, upper = torch.arange(units), torch.ones(units, units, dtype=torch.long).triu()
    begins = torch.cat([torch.ones(1, dtype=torch.bool), prompts[1:] != prompts[:-1]])
    run = begins.cumsum(0)
    before = totals.cumsum(0) - totals
    first = position.where(begins, 0).cummax(0).values  # of j's run
    sums = before + totals - before[first].maximum(before[:, None])  # (i, j): of j's run, from i on
    longest = (upper * (sums + lengths[:, 0] - 1)).cummax(1).values
    tokens = upper * (run - run[:, None] + 1) * longest
    if not by_rows:
        return tokens, tokens * longest
    of_prompt, own = (lengths[:, 0] - 1) ** 2, totals * (lengths.sum(1) - 1)
    until = (own + begins * of_prompt).cumsum(0)
    return tokens, upper * (until - until[:, None] + (own + of_prompt)[:, None])


def planned_cuts(
    lengths: Int[Tensor, "R U 2"],
    *,
    num_microbatches: int,
    budget: int,
    rows_per_unit: int = 1,
    units_each: int = 1,
    sharing: Sharing | None = None,
) -> list[list[list[int]]]:
    """Rank → micro-batch → its units: similar lengths together, and as little work as such a cut allows.

    Units are sorted by width, with ``sharing`` also by prompt where that pays, and cut where the work summed over the
    micro-batches is least; the rank with the most work in a micro-batch counts. All ranks get the same number of
    micro-batches and of units in each. Where a rank has fewer units to train, a unit u that is left out fills the place
    as padding, written as ``−1 − u``. Micro-batches that are not needed come first, each with unit 0 as padding.

    Args:
        lengths: tokens of each unit's prompt and completion on each rank; a completion of 0 is left out.
        budget: padded tokens of one micro-batch at most; where no cut fits, micro-batches have ``units_each`` units.
        rows_per_unit: 1, or the group size where groups stay together.
        units_each: units of the configured micro-batch; ``num_microbatches · units_each`` is never less than U.
        sharing: where rows may share prompts; ``None`` = they do not.
    """
    width = lengths.sum(2).masked_fill(lengths[:, :, 1] == 0, 0)
    order = width.argsort(dim=1, descending=True, stable=True)
    present = int((width > 0).sum(1).max())
    empty = [[-1]] * num_microbatches
    if present == 0:
        return [empty for _ in lengths]

    def cost(order: Tensor, *, shares: bool) -> tuple[Tensor, Tensor]:
        """Tokens, padding included, and cost of units i … j in this order: the maximum over ranks; 0 below i = j."""
        ordered = lengths.gather(1, order[:, :, None].expand_as(lengths))[:, :present]
        ordered = ordered.where((ordered[:, :, 1:] > 0), 1)  # padding alone: one token each
        upper = torch.ones(present, present, dtype=torch.long).triu()
        position = torch.arange(present)
        rows = upper * (position - position[:, None] + 1) * rows_per_unit
        wide = torch.stack([sum((upper * each).cummax(1).values for each in rank.T) for rank in ordered])
        tokens = rows * wide
        if sharing is None:
            return tokens.amax(0), tokens.amax(0)
        costs = work(tokens, tokens * wide, sharing.attention_length)
        if shares:
            of_units = (each.gather(1, order)[:, :present] for each in (sharing.totals, sharing.prompts))
            packed = [packed_tokens(*rank, by_rows=sharing.by_rows) for rank in zip(ordered, *of_units, strict=True)]
            shared, pairs = (torch.stack(each) for each in zip(*packed, strict=True))
            less = work(shared, pairs, sharing.attention_length)
            gains = pays(less, costs)
            tokens, costs = shared.where(gains, tokens), less.where(gains, costs)
        return tokens.amax(0), costs.amax(0)

    ends, least = _best_cut(*cost(order, shares=False), num_microbatches, budget)
    if sharing is not None:
        ranks = zip(order, lengths[:, :, 0], width, sharing.totals, sharing.prompts, strict=True)
        by_prompt = torch.stack([_by_prompt(*rank) for rank in ranks])
        shared_ends, shared_least = _best_cut(*cost(by_prompt, shares=True), num_microbatches, budget)
        if shared_ends is not None and pays(shared_least, least):
            order, ends = by_prompt, shared_ends
    ends = ends or [*range(units_each, present, units_each), present]
    starts = [0, *ends[:-1]]
    indices = order.where(width.gather(1, order) > 0, -1 - order)[:, :present].tolist()
    full = [[rank[start:end] for start, end in zip(starts, ends, strict=True)] for rank in indices]
    return [empty[len(ends) :] + rank for rank in full]


def _by_prompt(order: Tensor, prompt_lengths: Tensor, width: Tensor, totals: Tensor, prompts: Tensor) -> Tensor:
    """``order`` with the units of a prompt together, the longest packed sequence first; units left out come last."""
    present = width > 0
    sums = torch.zeros(int(prompts.max()) + 1, dtype=totals.dtype).scatter_add(0, prompts, totals * present)
    packed = (sums[prompts] + prompt_lengths).masked_fill(~present, 0)
    for key in (prompts, -packed):
        order = order[key[order].argsort(stable=True)]
    return order


def _best_cut(
    tokens: Int[Tensor, "U U"], cost: Int[Tensor, "U U"], max_microbatches: int, budget: int
) -> tuple[list[int] | None, int]:
    """Ends of the segments with the least summed cost, none with more tokens than ``budget``, and that cost; ends are
    ``None`` where no cut fits."""
    units = len(cost)
    edges = torch.arange(0, units, -(-units // _CANDIDATES))
    ends = torch.cat([edges[1:], torch.tensor([units])])
    too_many = tokens[edges][:, ends - 1] > budget
    between = cost[edges][:, ends - 1].masked_fill(too_many | (edges[:, None] >= ends), _NEVER // 2)
    least, came_from = between[0], []  # of everything up to each end, in one segment
    for _ in range(min(max_microbatches, len(ends)) - 1):
        before = torch.cat([torch.tensor([_NEVER // 2]), least[:-1]])
        sums, best = (before[:, None] + between).min(0)
        came_from.append(best.where(sums < least, -1))  # -1: no further segment helps
        least = least.minimum(sums)
    if int(least[-1]) >= _NEVER // 2:
        return None, _NEVER // 2
    found, last = [units], len(ends) - 1
    for best in reversed(came_from):
        start = int(best[last])
        if start >= 0:
            last = start - 1
            found.append(int(ends[last]))
    return found[::-1], int(least[-1])


class Packing(NamedTuple):
    """The layout of rows (B, P + T), padded on both sides, in packed sequences (G, M).

    Attributes:
        source: each packed token's place in the flattened rows; 0 for padding.
        owner: 0 for a token that all rows of the sequence share, 1 + b for one of row b alone, −1 for padding.
        scored, target: the places, in flattened (G, M), whose next token gets a log-probability, and the place of that
            in flattened (B, T).
        shape: (B, T).
    """

    source: Int[Tensor, "G M"]
    owner: Int[Tensor, "G M"]
    scored: Int[Tensor, "S"]
    target: Int[Tensor, "S"]
    shape: tuple[int, int]

    def to(self, device: torch.device) -> "Packing":
        """The same on ``device``."""
        moved = [each.to(device, non_blocking=True) for each in self[:4]]
        return Packing._make([*moved, self.shape])


def prompt_numbers(prompt_ids: Int[Tensor, "B P"], prompt_mask: Int[Tensor, "B P"]) -> Int[Tensor, "B"]:
    """The same number for rows of the same prompt; waits for the device."""
    numbers: Tensor = prompt_ids.masked_fill(prompt_mask == 0, -1).unique(dim=0, return_inverse=True)[1]
    return numbers


def packing(
    numbers: Int[Tensor, "B"], prompts: Int[Tensor, "B"], completions: Int[Tensor, "B"], before: int, after: int
) -> Packing:
    """The packing in which rows with the same prompt number share a sequence; all on the CPU.

    Args:
        prompts, completions: tokens of each row's prompt, which ends in column ``before − 1``, and of its completion,
            which begins in the next; a row with completion 0 is not packed.
        before, after: columns of prompts and of completions.
    """
    rows_of: dict[int, list[int]] = defaultdict(list)
    for row, (number, length) in enumerate(zip(numbers.tolist(), completions.tolist(), strict=True)):
        if length > 0:
            rows_of[number].append(row)
    last, width = before - 1, before + after
    sources, owners = [], []
    for rows in rows_of.values():
        shared = torch.arange(before - int(prompts[rows[0]]), last) + rows[0] * width
        own = [torch.arange(last, last + int(completions[row])) + row * width for row in rows]
        sources.append(torch.cat([shared, *own]))
        kinds = torch.tensor([0, *(row + 1 for row in rows)])
        counts = torch.tensor([len(shared), *map(len, own)])
        owners.append(kinds.repeat_interleave(counts))
    source = pad_sequence(sources, batch_first=True)
    owner = pad_sequence(owners, batch_first=True, padding_value=-1)
    scored = (owner.flatten() > 0).nonzero().squeeze(1)
    place = source.flatten()[scored]
    target = place // width * after + place % width - last
    return Packing(source, owner, scored, target, (len(numbers), after))


def visible(owner: Int[Tensor, "G M"]) -> Bool[Tensor, "G 1 M M"]:
    """Attention mask, (sequence, 1, query, key): a token sees the shared tokens and its row's, up to itself.

    Padding sees padding: a softmax over nothing would be NaN."""
    key, query = owner[:, None, :], owner[:, :, None]
    return ((key == 0) | (key == query)).tril()[:, None]


def replaces_attention(model: Any, device: torch.device) -> bool:
    """Whether attention may be another one inside a pass: on a CPU, where layers are not computed again in the backward
    pass, which runs outside."""
    recomputed = torch.is_grad_enabled() and any(
        getattr(module, "gradient_checkpointing", False) for module in model.modules()
    )
    return device.type == "cpu" and not recomputed


def grouped_heads(model: Any, device: torch.device) -> AbstractContextManager[None]:
    """Inside, where it may, heads of a group read the same keys and values, where transformers copies them for
    each."""
    grouped = {"use_gqa_in_sdpa": lambda *_: True}
    return temporarily(sdpa_attention, grouped if replaces_attention(model, device) else {})


def attention_by_rows(owner: Int[Tensor, "G M"]) -> Callable[..., tuple[Tensor, None]]:
    """transformers' SDPA for the mask `visible`, which computes none of the pairs between two rows. ``owner``: on the
    CPU; on a GPU one call for each row is not measured."""
    runs = [each.unique_consecutive(return_counts=True) for each in owner]
    layouts = [(owners.tolist(), lengths.tolist()) for owners, lengths in runs]

    def attend(
        module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, **keywords: Any
    ) -> tuple[Tensor, None]:
        del attention_mask  # the layouts say the same
        sequences = []
        for place, (owners, lengths) in enumerate(layouts):
            q, k, v = (each[place : place + 1].split(lengths, 2) for each in (query, key, value))
            shared, parts = (k[0][:, :, :0], v[0][:, :, :0]), []
            for row, asks, *own in zip(owners, q, k, v, strict=True):
                keys, values = (torch.cat(pair, 2) for pair in zip(shared, own, strict=True))
                if row == 0:
                    shared = keys, values
                length, seen = asks.shape[2], keys.shape[2]
                mask = torch.ones(1, 1, length, seen, dtype=torch.bool).tril(seen - length)
                parts.append(sdpa_attention_forward(module, asks, keys, values, mask, **keywords)[0])
            sequences.append(torch.cat(parts, 1))
        return torch.cat(sequences), None

    return attend


def with_shared_prompts(model: Any, packed: Packing) -> Callable[..., Any]:
    """``model`` with TRL's fused head, as a callable that takes rows as TRL passes them and runs packed sequences.

    Its result has ``log_probs`` and ``entropy`` (or ``None``) of the completions, (B, T): 0 in rows that are not packed
    and, as in TRL's head, at tokens without a label. Where it may be, attention is `attention_by_rows`."""
    by_rows: dict[str, Any] = {}
    if replaces_attention(model, packed.owner.device):
        by_rows = {"_local_mapping": {"sdpa": attention_by_rows(packed.owner)}}

    def forward(*, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, **keywords: Any) -> SimpleNamespace:
        del attention_mask  # the labels say which tokens get a log-probability
        following = labels.flatten()[packed.source + 1].masked_fill(packed.owner < 0, -100)
        with temporarily(ALL_ATTENTION_FUNCTIONS, by_rows):
            outputs = model(
                input_ids=input_ids.flatten()[packed.source],
                attention_mask=visible(packed.owner),
                position_ids=packed.source % input_ids.shape[1],
                shift_labels=following,
                **keywords,
            )

        def of_rows(values: Tensor | None) -> Tensor | None:
            if values is None:
                return None
            empty = values.new_zeros(packed.shape[0] * packed.shape[1])
            return empty.index_copy(0, packed.target, values.flatten()[packed.scored]).view(packed.shape)

        return SimpleNamespace(log_probs=of_rows(outputs.log_probs), entropy=of_rows(outputs.entropy), aux_loss=None)

    return forward


def attention_length(config: PretrainedConfig) -> float:
    """The sequence length at which attention costs as many operations a token as the rest of the layers.

    About six times the hidden size. The LM head is left out: its work is the same in any layout.
    """
    without, with_one = (trl_utils.compute_flops_per_token(config, length) for length in (0, 1))
    head = 3 * 2 * config.vocab_size * config.hidden_size
    return (without - head) / (with_one - without)


def unshareable(model: PreTrainedModel, *, has_plain_cache: bool, has_rotary_positions: bool) -> str | None:
    """The reason why rows of a model cannot share their prompt; ``None`` = they can."""
    implementation = model.config.get_text_config()._attn_implementation
    if not hasattr(trl_utils, "compute_flops_per_token"):
        return "this TRL lacks compute_flops_per_token"
    if not has_plain_cache:
        return "not all layers have full attention"
    if not has_rotary_positions:
        return "the model's positions are not rotary"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return "the model's forward pass takes no position_ids"
    if implementation != "sdpa":
        return f"attn_implementation {implementation!r} takes no mask of ours: write sdpa"
    return None
