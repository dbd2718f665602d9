"""Compact generation: transformers' decoding that reads a prompt once; ended rows leave, and less is copied.

The same seed gives the same tokens, except where rounding differs with fewer rows, of prompts and of what still runs.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from transformers import DynamicCache, GenerationConfig, PretrainedConfig
from transformers.cache_utils import DynamicLayer

from evenkeel.rewards.verifier import readable
from evenkeel.trainer.algorithms.keyed_noise import keyed_draw, row_key
from evenkeel.trainer.step.packing import grouped_heads
from evenkeel.trainer.step.setup import Ranks, temporarily

KEPT = 0.9
"""Ended rows leave once no more than this share of the batch is running: leaving copies what stays."""
_BY_ROW = ("attention_mask", "position_ids")
Draw = Callable[[Tensor, Tensor, int], Tensor]
"""Draws tokens (R,) from probabilities (R, V), the rows of the batch (R,) that they belong to, and the position."""
EVALUATION = -1
"""In place of a rollout batch's number: every evaluation of a run draws with the same noise."""


class SampleKeys:
    """A 64-bit key for each sample, made of the run's seed, the rollout batch, the prompt and the sample's number.

    They do not depend on how batches are cut, on the number of processes, or on padding.
    """

    def __init__(self, seed: int, ranks: Ranks) -> None:
        self.seed, self.ranks = seed, ranks
        self._batch: int | None = None
        self._drawn: Counter[int] = Counter()  # prompt's key → its samples so far, all ranks

    def start_over(self) -> None:
        """Number the samples of each prompt from 0 again."""
        self._batch = None

    def added_to(self, rows: list[dict[str, Any]], batch: int) -> list[dict[str, Any]]:
        """``rows`` with a column ``row_key``; ``batch``: number of the rollout batch. A collective."""
        prompts = [json.dumps(row["prompt"], sort_keys=True, default=str).encode() for row in rows]
        return [{**row, "row_key": key} for row, key in zip(rows, self.of(prompts, batch), strict=True)]

    def of(self, prompts: Sequence[Sequence[int]], batch: int) -> list[int]:
        """Keys of the next samples of this rank's ``prompts``; ``batch``: number of the rollout batch. A collective."""
        if batch != self._batch:
            self._batch, self._drawn = batch, Counter()
        everyones: list[list[int]] = gather_object([[row_key(0, 0, ids, 0) for ids in prompts]])
        keys = []
        for rank, rows in enumerate(everyones):
            for row, prompt in enumerate(rows):
                if rank == self.ranks.index:
                    keys.append(row_key(self.seed, batch, prompts[row], self._drawn[prompt]))
                self._drawn[prompt] += 1
        return keys


class CommonRandomNumbers(SampleKeys):
    """Sampling noise that runs share, so that variants differ only where their policies do.

    The noise of a token depends on its sample's key (of the prompt's tokens) and its position (see `keyed_draw`), not
    on earlier draws. An evaluation's greedy samples are numbered too. In a conversation with tools only the first turn
    is drawn this way.
    """

    def draw(self, prompt_ids: Sequence[Sequence[int]], batch: int) -> Draw:
        """The draw for this rank's prompts; ``batch``: number of the rollout batch. A collective."""
        keys = torch.tensor(self.of(prompt_ids, batch), device=self.ranks.device)
        return lambda probs, rows, position: keyed_draw(probs, keys[rows], position)


class PreallocatedLayer(DynamicLayer):
    """Keys and values (B, heads, T, head size) in memory with room for more: a new token copies only itself."""

    def __init__(self) -> None:
        super().__init__()
        self._room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append (B, heads, new, head size); returns all keys and values as views, valid until the next call."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states[..., :0, :], value_states[..., :0, :]
        length = self.keys.shape[-2]
        until = length + key_states.shape[-2]
        room = self._room
        if room is None or until > room[0].shape[-2] or self.keys.data_ptr() != room[0].data_ptr():
            room = self._room = _grown(self.keys, until), _grown(self.values, until)
        for memory, new in zip(room, (key_states, value_states), strict=True):
            memory[..., length:until, :] = new
        self.keys, self.values = room[0][..., :until, :], room[1][..., :until, :]
        return self.keys, self.values


def _grown(held: Tensor, until: int) -> Tensor:
    """New memory for ``until`` positions and a quarter more, with ``held`` (B, heads, T, head size) copied to it."""
    room = held.new_empty(*held.shape[:-2], until + max(32, until // 4), held.shape[-1])
    room[..., : held.shape[-2], :] = held
    return room


def preallocated_cache(config: PretrainedConfig) -> DynamicCache | None:
    """An empty cache with preallocated layers; ``None`` for a model whose layers are not all plain keys and values."""
    cache = DynamicCache(config=config)
    if not cache.layers or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [PreallocatedLayer() for _ in cache.layers]
    return cache


def sample_running(
    model: Any,
    input_ids: Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: GenerationConfig,
    draw: Draw | None = None,
    **model_kwargs: Any,
) -> Tensor:
    """The decoding loop, for ``model.generate(custom_generate=sample_running)``: rows that have ended leave the batch.

    Args:
        input_ids: (B, P) prompts, padded on the left; ``model_kwargs`` holds their ``attention_mask`` and an empty
            ``past_key_values`` of plain layers.
        draw: how tokens are sampled; ``None`` = as transformers does, from torch's stream.

    Returns:
        (B, P + T): prompts and completions, padded on the right to the longest.
    """
    running = torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
    rows = running.nonzero()[:, 0]  # index, in the full batch, of each row still running
    pad, prompt_length = generation_config.pad_token_id, input_ids.shape[1]
    sequences = input_ids.new_full((len(input_ids), generation_config.max_length), pad)
    prompts = torch.cat([input_ids, model_kwargs["attention_mask"]], dim=1)
    different, copies = prompts.unique(dim=0, return_inverse=True)
    firsts = copies.new_empty(len(different)).scatter_(0, copies, rows)
    repeated = len(different) < len(rows)
    model_kwargs = _of_rows(model_kwargs, firsts) if repeated else model_kwargs
    width = None  # the first forward reads each prompt once, a later one a token of each row
    while True:
        inputs = model.prepare_inputs_for_generation(
            input_ids[firsts] if repeated and width is None else input_ids,
            next_sequence_length=width,
            is_first_iteration=width is None,
            **model_kwargs,
        )
        outputs = model(**inputs, return_dict=True)
        model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)
        logits = outputs.logits[:, -1]
        if repeated and width is None:
            model_kwargs, logits = _of_rows(model_kwargs, copies), logits[copies]
        width = 1
        scores = logits_processor(input_ids, logits.float())
        if not generation_config.do_sample:
            tokens = scores.argmax(-1)
        elif draw is None:
            tokens = drawn(scores.softmax(-1), rows, len(sequences))
        else:
            tokens = draw(scores.softmax(-1), rows, input_ids.shape[1] - prompt_length)
        input_ids = torch.cat([input_ids, tokens.where(running, pad)[:, None]], dim=1)
        running = running & ~stopping_criteria(input_ids, None)
        kept = running.nonzero()[:, 0]
        if len(kept) > KEPT * len(rows):
            continue
        sequences[rows, : input_ids.shape[1]] = input_ids
        if not len(kept):
            return sequences[:, : input_ids.shape[1]]
        rows, input_ids, running = rows[kept], input_ids[kept], running[kept]
        model_kwargs = _of_rows(model_kwargs, kept)


def drawn(probs: Tensor, rows: Tensor, batch: int) -> Tensor:
    """The draw (R,) of ``torch.multinomial`` for ascending ``rows`` (R,) of a batch of ``batch`` rows; probs (R, V).

    It takes the largest quotient of probability and Exp(1) noise of torch's stream, drawn for the whole batch. On a CPU
    `exponential_` computes the same one logarithm at a time; here it is negative, and made row by row.
    """
    if probs.device.type != "cpu":
        return (probs / probs.new_empty(batch, probs.shape[1]).exponential_()[rows]).argmax(-1)
    running = dict(zip(rows.tolist(), probs, strict=True))
    tokens = []
    noise = probs.new_empty(probs.shape[1])
    uniform = torch.empty(probs.shape[1], dtype=torch.float64)
    for row in range(batch):
        uniform.uniform_()
        if row in running:
            noise.copy_(uniform.neg_().log1p_())
            tokens.append(torch.div(running[row], noise, out=noise).min(-1).indices)
    return torch.stack(tokens)


def _of_rows(model_kwargs: dict[str, Any], rows: Tensor) -> dict[str, Any]:
    """The arguments of ``rows`` (R,) of the batch, which may repeat; the cache is changed in place."""
    model_kwargs["past_key_values"].batch_select_indices(rows)
    return model_kwargs | {name: model_kwargs[name][rows] for name in _BY_ROW if name in model_kwargs}


@contextmanager
def compact_generation(model: Any, draw: Draw | None = None) -> Iterator[None]:
    """Inside, ``model.generate`` decodes with `sample_running` and a `preallocated_cache`; ``draw`` as there."""
    plain = model.generate

    def generate(*positional: Any, **keywords: Any) -> Any:
        keywords["past_key_values"] = preallocated_cache(model.config)
        with grouped_heads(model, model.device):
            return plain(*positional, **keywords, custom_generate=partial(sample_running, draw=draw))

    with temporarily(model, {"generate": generate}):
        yield


@contextmanager
def engine_kept_awake(trainer: Any) -> Iterator[None]:
    """Inside, vLLM stays awake from one generation to the next, where it runs in this process with sleep mode.

    TRL puts it to sleep after each, which discards its weights.
    """
    engine = trainer.vllm_generation if trainer.use_vllm else None
    if engine is None or engine.mode != "colocate" or not engine.enable_sleep_mode:
        yield
        return
    engine.sync_weights()  # wakes the memory of the weights
    trainer._last_loaded_step = trainer.state.global_step
    engine.llm.wake_up(tags=["kv_cache"])
    try:
        with temporarily(engine, {"enable_sleep_mode": False}):
            yield
    finally:
        engine.llm.sleep(level=2)
        engine._llm_weights_sleeping = True


def fitted(answer: Any, tokenizer: Any, limit: int) -> Any:
    """A tool's answer made readable for a tokenizer; of a very long one only a beginning of more than ``limit`` tokens.

    TRL ends a row at an answer that does not fit its completion, but tokenizes all of the answer first.
    """
    if isinstance(answer, list):
        return [fitted(part, tokenizer, limit) for part in answer]
    if isinstance(answer, dict):
        return {**answer, "text": fitted(answer["text"], tokenizer, limit)} if "text" in answer else answer
    if not isinstance(answer, str):
        return answer
    text, length = readable(answer), 8 * limit
    text = text[max(len(text) - len(text.lstrip()) - length, 0) :]  # a template may strip what is around it
    text = text[: len(text.rstrip()) + length]
    while length < len(text):
        if len(tokenizer(text[:length].strip(), add_special_tokens=False)["input_ids"]) > limit:
            return text[:length]
        length *= 2
    return text
