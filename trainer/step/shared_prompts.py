"""Rows of one prompt in one sequence: the prompt once, then each completion, which does not see the others.

The completions of a group begin with the same prompt, and a causal model computes the same numbers for it each time.
`packing` lays a micro-batch's rows out as one sequence per prompt, ``[prompt, completion 1, …, completion k]``: every
token keeps the position that it has in its row, and attention lets it see the prompt and its own completion, up to
itself. Log-probabilities, entropies and gradients are those of the rows, up to the order in which sums add.

Only the tokens whose output a completion needs are laid out. The last token of a prompt predicts the first token of
each completion, so each completion begins with a copy of it; the last token of a completion predicts nothing and is
left out. With prompts of P tokens and completions of n₁ … n_k that is ``P − 1 + Σ n`` tokens instead of ``Σ (P + n)``.

The attention mask of a packed sequence of M tokens has M² entries of one byte, and SDPA computes all M² of them: work
that grows with M. `evenkeel.trainer.step.microbatch_plan` counts it, and packs only where that leaves less to compute.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PretrainedConfig, PreTrainedModel
from trl.trainer.utils import compute_flops_per_token


class Packing(NamedTuple):
    """Where the tokens of rows (B, P + T), padded on both sides, lie in packed sequences (G, M).

    Attributes:
        source: each packed token's place in the flattened rows; 0 for padding.
        owner: 0 for a token that all rows of the sequence share, 1 + b for one of row b alone, −1 for padding.
        scored, target: the places, in flattened (G, M), whose next token is scored, and where in flattened (B, T) the
            score belongs.
        shape: (B, T).
    """

    source: Int[Tensor, "G M"]
    owner: Int[Tensor, "G M"]
    scored: Int[Tensor, "S"]
    target: Int[Tensor, "S"]
    shape: tuple[int, int]

    def to(self, device: torch.device) -> "Packing":
        """The same on ``device``."""
        source, owner, scored, target = (each.to(device, non_blocking=True) for each in self[:4])
        return Packing(source, owner, scored, target, self.shape)


def prompt_numbers(prompt_ids: Int[Tensor, "B P"], prompt_mask: Int[Tensor, "B P"]) -> Int[Tensor, "B"]:
    """The same number for rows of the same prompt; on a GPU the host waits for it."""
    numbers: Tensor = prompt_ids.masked_fill(prompt_mask == 0, -1).unique(dim=0, return_inverse=True)[1]
    return numbers


def packing(
    numbers: Int[Tensor, "B"], prompts: Int[Tensor, "B"], completions: Int[Tensor, "B"], before: int, after: int
) -> Packing:
    """Rows of the same prompt's number in one sequence; all on the CPU.

    Args:
        prompts, completions: tokens of each row's prompt, which ends in column ``before − 1``, and of its completion,
            which begins in the next; a completion of 0 takes no place.
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
        kinds, counts = torch.tensor([0, *(row + 1 for row in rows)]), torch.tensor([len(shared), *map(len, own)])
        owners.append(kinds.repeat_interleave(counts))
    source = pad_sequence(sources, batch_first=True)
    owner = pad_sequence(owners, batch_first=True, padding_value=-1)
    scored = (owner.flatten() > 0).nonzero().squeeze(1)
    place = source.flatten()[scored]
    target = place // width * after + place % width - last
    return Packing(source, owner, scored, target, (len(numbers), after))


def visible(owner: Int[Tensor, "G M"]) -> Bool[Tensor, "G 1 M M"]:
    """Which token (last dimension) each token (the one before) attends to: what all share and its own, up to itself.

    Padding sees padding, for a softmax over nothing is not a number.
    """
    key, query = owner[:, None, :], owner[:, :, None]
    return ((key == 0) | (key == query)).tril()[:, None]


def with_shared_prompts(model: Callable[..., Any], packed: Packing) -> Callable[..., Any]:
    """``model`` with TRL's fused head, called for rows as TRL calls it, and run on packed sequences.

    What it returns holds ``log_probs`` and ``entropy`` (or ``None``) of the completions alone, (B, T): 0 where a row
    was not laid out or TRL's label says that a token is not scored, as TRL's head does.
    """

    def forward(*, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, **keywords: Any) -> SimpleNamespace:
        del attention_mask  # labels say which tokens are scored, the packing which are there
        following = labels.flatten()[packed.source + 1].masked_fill(packed.owner < 0, -100)
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
    """The length at which attention over it costs as many operations a token as all else in the layers.

    Six times the hidden size in a usual transformer: 3,800 tokens in one of 0.6 billion parameters, 30,000 in one of 7.
    The LM head is left out: it computes the completions' tokens, which are as many in any layout.
    """
    without, with_one = (compute_flops_per_token(config, length) for length in (0, 1))
    head = 3 * 2 * config.vocab_size * config.hidden_size
    return (without - head) / (with_one - without)


def unshareable(model: PreTrainedModel, *, has_plain_cache: bool, has_rotary_positions: bool) -> str | None:
    """Why rows of a model cannot share their prompt; ``None`` = they can."""
    implementation = model.config.get_text_config()._attn_implementation
    if not has_plain_cache:
        return "some layers look back in another way than by full attention (sliding window, chunks, linear attention)"
    if not has_rotary_positions:
        return "the model's positions are not rotary"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return "the model's forward pass takes no position_ids, and each completion goes on from its prompt's"
    if implementation != "sdpa":
        return f"attn_implementation {implementation!r} takes no mask of completions that do not see each other: " + (
            "write attn_implementation: sdpa"
        )
    return None
