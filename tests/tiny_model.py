"""A real causal LM small enough to train hundreds of times: 2 layers, hidden size 32, 24 words."""

from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WORDS = ["<pad>", "<eos>", "<unk>", "user", "assistant", *"0123456789", *"abcdefghi"]
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' ' }}{% if m['role'] == 'assistant' %}<eos>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}assistant {% endif %}"
)


def save_tiny_model(folder: Path, seed: int = 0) -> Path:
    """Write model and tokenizer to ``folder``; the same seed writes the same weights."""
    words = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", chat_template=CHAT_TEMPLATE
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    Qwen3ForCausalLM(tiny_config()).save_pretrained(folder)
    return folder


def byte_tokenizer(template: str, **special: str) -> PreTrainedTokenizerFast:
    """Bytes and ``special`` tokens, with TRL's chat template of that name."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({character: index for index, character in enumerate(alphabet)}, []))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    words.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=words, padding_side="left", **special)
    made.chat_template = (Path(trl.__file__).parent / f"chat_templates/{template}.jinja").read_text(encoding="utf-8")
    return made


def tiny_config(**changes: Any) -> Qwen3Config:
    """The model's, with ``changes``."""
    own = {
        "vocab_size": len(WORDS),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 128,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
    }
    return Qwen3Config(**{**own, **changes})
