"""A scripted policy: random turns through the trainer and TRL up to the rollout batch, with Qwen2.5's template.

Turns are answers, calls in the template's syntax, several calls, broken calls, turns without an end and empty ones.
Texts hold any character and the template's own marks, and are tokenized in a random way; so are the tools' answers.
"""

import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trl
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode
from trl import GRPOConfig
from trl.chat_template_utils import add_response_schema

from evenkeel.trainer import RLVRTrainer

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja"
END = "<|im_end|>"
MARKS = (
    "<|im_start|>",
    END,
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<tools>",
    "</tools>",
)
_PAIRS = ("t h", "th e", "e r", "i n", "Ġ Ġ", '" :', "Ċ Ċ", "a n", "o n", "< /", "Ã ©")
_MERGES = [(first, second) for first, _, second in (pair.partition(" ") for pair in _PAIRS)]
"""So that a text can be spelled in many ways."""
_TEXTS = (
    "The answer is 4.",
    "naïve café, 東京 🚲",
    "and then\n\n\nthe other",
    "  \t ",
    "{}[]\"'\\",
    "e\u0301\u200d\ufeff",
)
LIMIT = 600
"""Tokens of a completion: some conversations are cut off."""
BATCH = 20
"""Conversations of a rollout batch."""


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, a few merges and the template's marks, with TRL's parser of its calls."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, _MERGES)]
    bytes_and_merges = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, _MERGES))
    bytes_and_merges.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_and_merges.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytes_and_merges, bos_token="<bos>", eos_token=END, pad_token="<pad>", padding_side="left"
    )
    made.add_tokens([*MARKS])
    made.chat_template = TEMPLATE.read_text(encoding="utf-8")
    add_response_schema(made)
    return made


@dataclass
class Conversation:
    """What was really said in one row.

    Attributes:
        shown: ids that the policy was shown, one list a turn; the first is the prompt.
        written: ids that it wrote then.
    """

    shown: list[list[int]] = field(default_factory=list)
    written: list[list[int]] = field(default_factory=list)


class ScriptedPolicy:
    """Writes random turns in the template's syntax."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer, self.rng = tokenizer, random.Random(0)
        self._byte_ids = {byte: tokenizer.convert_tokens_to_ids(word) for byte, word in bytes_to_unicode().items()}

    def text(self, pieces: int = 4) -> str:
        """Any characters, and the template's marks, whole or broken."""
        rng = self.rng
        kinds = (
            lambda: rng.choice(_TEXTS),
            lambda: rng.choice(MARKS),
            lambda: rng.choice(MARKS)[: rng.randint(1, 6)],
            lambda: "".join(chr(rng.choice((rng.randint(32, 126), rng.randint(160, 0xD7FF)))) for _ in range(5)),
        )
        return "".join(rng.choices(kinds, (5, 1, 1, 3))[0]() for _ in range(rng.randint(0, pieces)))

    def turn(self) -> list[int]:
        """The ids of what it says next."""
        kind = self.rng.choices(("call", "calls", "broken", "answer", "empty", "no end"), (8, 3, 3, 3, 1, 2))[0]
        text = ""
        if kind in ("call", "calls", "broken"):
            text = self._calls(self.rng.randint(2, 3) if kind == "calls" else 1)
            if self.rng.random() < 0.2:
                text = self.text(2) + text
        elif kind != "empty":
            text = self._calls(1) if kind == "no end" and self.rng.random() < 0.5 else self.text(6)
        if kind == "broken":
            first = self.rng.randrange(len(text))
            text = text[:first] + self.rng.choice(("", self.text(1))) + text[first + self.rng.randint(1, 5) :]
        ids = self.spelled(text)
        return ids if kind == "no end" and ids else [*ids, self.tokenizer.eos_token_id]

    def _calls(self, number: int) -> str:
        """So many calls in the template's syntax, without the end of the turn."""
        calls = []
        for _ in range(number):
            name, arguments = self.rng.choice(
                (
                    ("search", {"query": self.text(3)}),
                    ("add", {"a": self.rng.randint(-9, 99), "b": self.rng.randint(0, 9)}),
                    ("fail", {"text": self.text(1), "more": {"list": [1, None, True, self.text(1)]}}),
                    ("add", {}),
                    ("unknown", {"x": 0.5}),
                )
            )
            calls.append({"type": "function", "function": {"name": name, "arguments": arguments}})
        asked = [{"role": "user", "content": "x"}]
        answered = [*asked, {"role": "assistant", "content": "", "tool_calls": calls}]
        before, whole = (
            self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=messages is asked)
            for messages in (asked, answered)
        )
        return whole.removeprefix(before).rstrip().removesuffix(END)

    def spelled(self, text: str) -> list[int]:
        """Ids of which ``text`` is the decoding; as the tokenizer would make them, or byte by byte, piece by piece."""
        ids: list[int] = []
        while text:
            piece, text = text[: (length := self.rng.randint(1, 40))], text[length:]
            if self.rng.random() < 0.3:
                ids += [self._byte_ids[byte] for byte in piece.encode()]
            else:
                ids += self.tokenizer(piece, add_special_tokens=False)["input_ids"]
        return ids


class Scripted(RLVRTrainer):
    """Its policy is a script, one conversation a row; what it was shown and what it wrote is kept."""

    policy: ScriptedPolicy
    conversations: list[Conversation]

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        written = []
        for shown in prompt_ids:
            row = re.search(r"Row (\d+):", self.processing_class.decode(shown))
            assert row is not None
            ids = self.policy.turn()
            conversation = self.conversations[int(row[1])]
            conversation.shown.append([*shown])
            conversation.written.append([*ids])
            written.append(ids)
        return written, None


def scripted_trainer(folder: Path, **settings: Any) -> Scripted:
    """A trainer with the template's tokenizer, tools that answer at random, and a model that nobody asks to write."""
    tokenizer = byte_tokenizer()

    def search(query: str) -> str:
        """Look something up.

        Args:
            query: what to look for.
        """
        return trainer.policy.text(5)

    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: one.
            b: the other.
        """
        return a + b

    def fail(text: str) -> str:
        """Always fail.

        Args:
            text: anything.
        """
        raise RuntimeError(trainer.policy.text(2))

    sizes = dict.fromkeys(("hidden_size", "intermediate_size", "head_dim"), 8)
    heads = dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads"), 1)
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **sizes, **heads))
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    arguments = GRPOConfig(
        output_dir=str(folder),
        bf16=False,
        use_cpu=True,
        per_device_train_batch_size=BATCH,
        num_generations=2,
        max_completion_length=LIMIT,
        max_tool_calling_iterations=6,
        report_to="none",
        disable_tqdm=True,
        **settings,
    )
    trainer = Scripted(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [[{"role": "user", "content": "Hello."}]] * BATCH}),
        processing_class=tokenizer,
        reward_funcs=lambda completions, **_: [float(row) for row in range(len(completions))],
        tools=[search, add, fail],
    )
    trainer.policy = ScriptedPolicy(tokenizer)
    return trainer


def rollout(trainer: Scripted) -> dict[str, Any]:
    """A rollout batch of new conversations."""
    trainer.model.train()
    trainer.conversations = [Conversation() for _ in range(BATCH)]
    asked = [f"Row {row}: {trainer.policy.text()}" for row in range(BATCH)]
    return trainer._generate_and_score_completions([{"prompt": [{"role": "user", "content": a}]} for a in asked])
