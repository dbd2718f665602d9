"""The architecture of the tiny policies: a word-level tokenizer and a Qwen3 of a few million parameters at most."""

from collections.abc import Sequence
from typing import Any

import tokenizers
import transformers

from scripts.tiny_policy.tasks import Tokens

WORD = r"<\|?/?[a-z]+\|?>|[0-9]+|[A-Za-z]+|[^\sA-Za-z0-9]"  # a tag, a number, a word, or a sign
EXACT = r"<\|?/?[a-z]+\|?>|```|\n *| ?[0-9]+| ?\\?[A-Za-z]+| ?[^\sA-Za-z0-9]| "  # the blank before it included
ROLES = ("system", "user", "assistant")
PAD, END, UNKNOWN = "<|pad|>", "<|end|>", "<|unknown|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
    "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CALLING_TEMPLATE = (
    "{% if tools %}<|system|>{% for tool in tools %}{{ tool.function.name }}"
    "({{ tool.function.parameters.properties | join(', ') }}){% endfor %}<|end|>{% endif %}"
    "{% for message in messages %}<|{{ message.role }}|>{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}{% for call in message.tool_calls or [] %}<call>{{ call.function.name }}("
    "{% for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }}"
    "{% if not loop.last %}, {% endif %}{% endfor %})</call>{% endfor %}<|end|>{% endgeneration %}"
    "{% else %}{{ message.content }}<|end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Tools are named in a system message; a call reads ``<call>guess(number=8)</call>``."""
CALLS = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<call>(?P<name>\w+)\(",
            "close_pattern": r"\)</call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": r'(?P<key>\w+)=(?P<value>"(?:[^"\\]|\\.)*"|[^,]*)',
                "value_parser": {"name": "json", "args": {"allow_non_json": True}},
            },
            "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
        },
        "content": {"close_pattern": r"<\|end\|>", "content": "text"},
    },
}
"""How transformers reads calls from what a policy wrote: the tokenizer's ``response_template``."""


def tiny_tokenizer(vocabulary: Sequence[str], tokens: Tokens, *, calls_tools: bool = False) -> Any:
    """A word-level tokenizer. Tags are ordinary words: they survive ``skip_special_tokens`` and verifiers see them."""
    roles = (*ROLES, "tool") if calls_tools else ROLES
    exact = tokens == "exact"
    pieces = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(EXACT if exact else WORD), behavior="isolated" if exact else "removed", invert=not exact
    )
    special = [PAD, END, UNKNOWN, *(f"<|{role}|>" for role in roles)]
    tags = ["<call>", "</call>"] if calls_tools else ["<think>", "</think>", "<answer>", "</answer>"]
    words = [piece for word in vocabulary for piece, _ in pieces.pre_tokenize_str(word)]
    ids = {word: index for index, word in enumerate(dict.fromkeys(special + tags + words))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pieces
    if exact:
        tokenizer.decoder = tokenizers.decoders.Fuse()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[f"<|{role}|>" for role in roles],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )
    fast.chat_template = CALLING_TEMPLATE if calls_tools else CHAT_TEMPLATE
    if calls_tools:
        fast.response_template = CALLS
    return fast


def tiny_model(tokenizer: Any, layers: int, hidden_size: int = 128) -> Any:
    """A Qwen3, randomly initialised: of two layers .4, 1.6 and 6.4 million parameters with 128, 256 and 512 units.

    Args:
        hidden_size: a multiple of 64.
    """
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=hidden_size // 32,
        num_key_value_heads=hidden_size // 64,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return transformers.Qwen3ForCausalLM(config)
