"""Prompts and completions against the positions that the model was made for."""

from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.check.context import CheckContext, Finding, error
from evenkeel.trainer.run.library_errors import in_words

_CHARACTERS = 64
"""So many of the longest prompts by their characters are among those that are tokenized."""


def length_findings(context: CheckContext) -> Iterator[Finding]:
    """Completions, prompts, and both together, beyond the context or beyond vLLM's."""
    longest_completion = context.argument("max_completion_length")
    limits = [("the model's context", context.max_positions)]
    if context.argument("use_vllm"):
        limits.append(("trl.vllm_max_model_length", context.argument("vllm_max_model_length")))
    for name, limit in limits:
        if limit is None:
            continue
        if longest_completion >= limit:
            yield error(
                "trl",
                "completions-beyond-context",
                f"trl.max_completion_length = {longest_completion}, but {name} is {limit} tokens, prompt included. "
                f"Write max_completion_length below {limit}, with room for the prompts.",
            )
            continue
        for part, lengths in context.prompt_lengths.items():
            yield from _against(part, lengths, longest_completion, name, limit)


def tokenized_lengths(context: CheckContext) -> dict[str, list[int]]:
    """Tokens of the prompts of each set: of the longest by their characters, and of others evenly spread."""
    if context.tokenizer is None or not context.tokenizer.chat_template:
        return {}
    lengths, options = {}, context.argument("chat_template_kwargs") or {}
    for part, rows in context.rows.items():
        prompts = rows["prompt"][:]
        chosen = [prompts[row] for row in chosen_rows(prompts, context.most_rows)]
        try:
            written = context.tokenizer.apply_chat_template(
                chosen, add_generation_prompt=True, tokenize=False, **options
            )
        except Exception as fault:  # a template is a program of its own
            raise Refusal(f"The chat template cannot write the prompts: {in_words(fault)}", code="tokenizer") from fault
        lengths[part] = [len(ids) for ids in context.tokenizer(written, add_special_tokens=False)["input_ids"]]
    return lengths


def chosen_rows(prompts: Sequence[Any], most: int) -> list[int]:
    """The rows that are tokenized: all, or the `_CHARACTERS` longest and evenly spread ones, ``most`` in all."""
    if len(prompts) <= most:
        return [*range(len(prompts))]
    sizes = [sum(len(message["content"]) for message in prompt) for prompt in prompts]
    longest = sorted(range(len(prompts)), key=lambda row: -sizes[row])[: min(_CHARACTERS, most // 2)]
    others = most - len(longest)
    return sorted({*longest, *(number * len(prompts) // others for number in range(others))})


def _against(part: str, lengths: list[int], completion: int, name: str, limit: int) -> Iterator[Finding]:
    looked = f"of {len(lengths)} prompts of data.{part} that were tokenized"
    beyond = sum(length >= limit for length in lengths)
    tight = sum(length + completion > limit for length in lengths)
    if beyond:
        yield error(
            "data",
            "prompts-beyond-context",
            f"data.{part}: {beyond} {looked} are as long as {name} of {limit} tokens or longer; the longest has "
            f"{max(lengths)}. TRL 1.16 neither cuts nor drops them. Drop these rows, or take a model with a longer "
            "context.",
        )
    elif tight:
        room = limit - max(lengths)
        yield error(
            "data",
            "no-room-for-completions",
            f"data.{part}: {tight} {looked} leave no room for a completion of trl.max_completion_length = {completion} "
            f"tokens in {name} of {limit}; the longest has {max(lengths)}. Write max_completion_length: {room}, or "
            "drop these rows.",
        )
