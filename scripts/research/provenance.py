"""Whether exactly the tokens that a policy wrote are trained: every chat template of TRL's × random conversations.

The policy is a script: its turns are answers, calls in the template's own syntax, several calls, broken calls, turns
without an end and empty ones, of texts with any character and with the template's own marks, spelled in tokens in one
of many ways. Tools answer with such texts too. All else is the trainer's and TRL's own, up to the rollout batch.

    python -m scripts.research.provenance --scripts 1000     # three minutes on a shared core
"""

import argparse
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import trl
from datasets import Dataset
from jinja2 import TemplateError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode
from trl import GRPOConfig
from trl.chat_template_utils import add_response_schema, supports_tool_calling

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.command import positive
from evenkeel.trainer.step.provenance import agreement
from scripts.program import run

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
TRAINING = "_training"
"""How the name of a template ends that TRL puts in the place of another one."""
_MARK = re.compile(r"""<[|｜][^<>\s'"{}]*?[|｜]?>|<[A-Za-z_/][\w▁]*\|?>|<\|"\|>|\[/?[A-Z_]+\]""")
"""What a template writes that its tokenizer has a token for, or could have."""
_ENDS = {
    "gemma4": ("<eos>", "<turn|>", "<|tool_response>"),
    "glm4moe": ("<|endoftext|>", "<|user|>", "<|observation|>"),
    "gptoss": ("<|return|>", "<|return|>", "<|call|>"),
    "lfm2": ("<|im_end|>", "<|im_end|>", "<|im_end|>"),
    "llama3": ("<|eot_id|>", "<|eot_id|>", "<|eot_id|>"),
    "nemotron": ("<|im_end|>", "<|im_end|>", "<|im_end|>"),
    "qwen": ("<|im_end|>", "<|im_end|>", "<|im_end|>"),
}
"""How a template's name begins → its models' ``eos_token``, and what they end an answer and a call with."""
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
    "0x1F",
)
LIMIT = 600
"""Tokens of a completion: some conversations are cut off."""
BATCH = 20
"""Conversations of a rollout batch."""


def untried(name: str) -> str | None:
    """Why no conversation with tools is possible with a template; ``None`` where it is."""
    tokenizer = byte_tokenizer(name)
    if not supports_tool_calling(tokenizer):
        return "writes no calls, or no answers of tools"
    return None if getattr(tokenizer, "response_template", None) else "TRL has no parser of its calls"


def byte_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Bytes, a few merges and what the template writes; with the parser that TRL has for it, if it has one.

    A training template has its original's parser.
    """
    text = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    ends = _ends(name)
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, _MERGES)]
    bytes_and_merges = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, _MERGES))
    bytes_and_merges.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_and_merges.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytes_and_merges, bos_token="<bos>", eos_token=ends[0], pad_token="<pad>", padding_side="left"
    )
    made.add_tokens(sorted({*_MARK.findall(text), *ends}))
    made.chat_template = (TEMPLATES / f"{name.removesuffix(TRAINING)}.jinja").read_text(encoding="utf-8")
    with suppress(ValueError):  # it has none
        add_response_schema(made)
    made.chat_template = text
    return made


def _ends(name: str) -> tuple[str, str, str]:
    return next((ends for start, ends in _ENDS.items() if name.startswith(start)), ("<eos>", "<eos>", "<eos>"))


@dataclass
class Conversation:
    """What was really said in one row.

    Attributes:
        shown: ids that the policy was shown, one list a turn; the first is the prompt.
        written: ids that it wrote then.
        texts: what it meant by them.
    """

    shown: list[list[int]] = field(default_factory=list)
    written: list[list[int]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class ScriptedPolicy:
    """Writes random turns in a template's syntax.

    Args:
        render: messages → text, by the template.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, ends: Sequence[str], render: Callable[..., str], rng: random.Random
    ) -> None:
        self.tokenizer, self.render, self.rng = tokenizer, render, rng
        self.answer_end, self.call_end = ends
        self.marks = [*tokenizer.get_added_vocab()]
        self._byte_ids = {byte: tokenizer.convert_tokens_to_ids(word) for byte, word in bytes_to_unicode().items()}

    def text(self, pieces: int = 4) -> str:
        """Any characters, and the template's marks, whole or broken."""
        rng = self.rng
        kinds = (
            lambda: rng.choice(_TEXTS),
            lambda: rng.choice(self.marks),
            lambda: rng.choice(self.marks)[: rng.randint(1, 6)],
            lambda: "".join(chr(rng.choice((rng.randint(32, 126), rng.randint(160, 0xD7FF)))) for _ in range(5)),
        )
        return "".join(rng.choices(kinds, (5, 1, 1, 3))[0]() for _ in range(rng.randint(0, pieces)))

    def turn(self) -> tuple[str, list[int]]:
        """What it says next, and its ids."""
        kind = self.rng.choices(("call", "calls", "broken", "answer", "empty", "no end"), (8, 3, 3, 3, 1, 2))[0]
        text, end = "", self.answer_end
        if kind in ("call", "calls", "broken"):
            text, end = self._calls(self.rng.randint(2, 3) if kind == "calls" else 1), self.call_end
            if self.rng.random() < 0.2:
                text = self.text(2) + text
        elif kind != "empty":
            text = self._calls(1) if kind == "no end" and self.rng.random() < 0.5 else self.text(6)
        if kind == "broken":
            first = self.rng.randrange(len(text))
            text = text[:first] + self.rng.choice(("", self.text(1))) + text[first + self.rng.randint(1, 5) :]
        ids = self.spelled(text)
        if kind == "no end" and ids:
            return text, ids
        return text + end, [*ids, self.tokenizer.convert_tokens_to_ids(end)]

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
        try:
            return self._rendered(calls)
        except TemplateError:  # one call a turn is all that it writes
            return "".join(self._rendered([call]) for call in calls)

    def _rendered(self, calls: list[Any]) -> str:
        asked = [{"role": "user", "content": "x"}]
        answered = [*asked, {"role": "assistant", "content": "", "tool_calls": calls}]
        whole = self.render(answered)
        text = whole[agreement(self.render(asked, add_generation_prompt=True), whole) :]
        return text.rstrip().removesuffix(self.call_end)

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
    suffixes: list[list[int]]

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        written = []
        for shown in prompt_ids:
            row = re.search(r"Row (\d+):", self.processing_class.decode(shown))
            assert row is not None
            text, ids = self.policy.turn()
            conversation = self.conversations[int(row[1])]
            conversation.shown.append([*shown])
            conversation.written.append([*ids])
            conversation.texts.append(text)
            written.append(ids)
        return written, None

    def _get_tool_suffix_ids(self, tool_messages: Any) -> Any:
        suffix = super()._get_tool_suffix_ids(tool_messages)
        self.suffixes.append([*suffix])
        return suffix


def scripted_trainer(name: str, folder: str | Path, seed: int, **settings: Any) -> Scripted:
    """A trainer with the template's tokenizer, tools that answer at random, and a model that nobody asks to write."""
    tokenizer, ends = byte_tokenizer(name), _ends(name)

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
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids([*dict.fromkeys(ends)])
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
    render = partial(tokenizer.apply_chat_template, tokenize=False, chat_template=trainer.chat_template)
    trainer.policy = ScriptedPolicy(tokenizer, ends[1:], render, random.Random(f"{name} {seed}"))
    return trainer


@dataclass
class Tried:
    """What became of a template's conversations.

    Attributes:
        turns: of the policy.
        trained, inserted: tokens of the completions that are and are not.
        respelled: completions whose ids are not what the tokenizer makes of their text.
        twice: turns whose end the template wrote once more after them.
        problems: one sentence for each conversation that is not trained as it was written.
    """

    template: str
    conversations: int = 0
    turns: int = 0
    trained: int = 0
    inserted: int = 0
    respelled: int = 0
    twice: int = 0
    problems: list[str] = field(default_factory=list)


def rollout(trainer: Scripted) -> dict[str, Any]:
    """A rollout batch of new conversations."""
    trainer.model.train()
    trainer.conversations, trainer.suffixes = [Conversation() for _ in range(BATCH)], []
    asked = [f"Row {row}: {trainer.policy.text()}" for row in range(BATCH)]
    return trainer._generate_and_score_completions([{"prompt": [{"role": "user", "content": a}]} for a in asked])


def tried(trainer: Scripted, name: str, scripts: int) -> Tried:
    """At least so many random conversations, in whole batches, through the trainer and TRL to the rollout batch."""
    found = Tried(name)
    while found.conversations < scripts:
        batch = rollout(trainer)
        for row, said in enumerate(trainer.conversations):
            problem = _problem(batch, row, said, trainer)
            if problem is not None:
                found.problems.append(f"conversation {found.conversations}: {problem}")
            ids, mask = _completion(batch, row)
            found.conversations += 1
            found.turns += len(said.written)
            found.trained += sum(mask)
            found.inserted += len(mask) - sum(mask)
            found.respelled += trainer._tokenizer(trainer._tokenizer.decode(ids))["input_ids"] != ids
            for shown, turn, after in zip(said.shown[:-1], said.written[:-1], said.shown[1:], strict=True):
                found.twice += turn[-1] in trainer.eos_token_ids and after[len(shown + turn)] == turn[-1]
    return found


def _completion(batch: dict[str, Any], row: int) -> tuple[list[int], list[int]]:
    """Ids and mask of a row's completion without its padding."""
    length = int(batch["completion_mask"][row].sum())
    return batch["completion_ids"][row, :length].tolist(), batch["tool_mask"][row, :length].tolist()


def _problem(batch: dict[str, Any], row: int, said: Conversation, trainer: Scripted) -> str | None:
    """What is wrong with a row of the batch, by what was really said."""
    (ids, mask), prompt = _completion(batch, row), said.shown[0]
    expected, marks = [*said.written[0]], [1] * len(said.written[0])
    for shown, turn in zip(said.shown[1:], said.written[1:], strict=True):
        before = prompt + expected
        suffix = shown[len(before) :]
        if shown[: len(before)] != before or suffix not in trainer.suffixes:
            return "the policy was not shown what it and the tools had written"
        expected += suffix + turn
        marks += [0] * len(suffix) + [1] * len(turn)
    if batch["prompt_ids"][row][batch["prompt_mask"][row].bool()].tolist() != prompt:
        return "the batch has another prompt"
    if ids != expected[:LIMIT]:
        return "the completion is not what was written and inserted, in order"
    if mask != marks[:LIMIT]:
        return "other tokens are trained than were written"
    trained = [token for token, is_trained in zip(ids, mask, strict=True) if is_trained]
    if len(expected) <= LIMIT and trainer._tokenizer.decode(trained) != "".join(said.texts):
        return "what is trained does not read as what was written"
    return None


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("--scripts", type=positive(int), default=1000, help="conversations a template; default 1000")
    command.add_argument("--seed", type=int, default=0, help="of the conversations; default 0")


def measure(options: argparse.Namespace) -> None:
    """Print the table, and why templates are not in it."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    print(f"TRL {trl.__version__}, {date.today()}, seed {options.seed}\n")
    print("| template | conversations | turns | tokens trained | tokens inserted | respelled | end twice | not exact |")
    print("|---|" + "---|" * 7)
    absent: dict[str, list[str]] = {}
    for name in NAMES:
        if (reason := untried(name)) is not None:
            absent.setdefault(reason, []).append(f"`{name}`")
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = tried(scripted_trainer(name, folder, options.seed), name, options.scripts)
        numbers = (found.conversations, found.turns, found.trained, found.inserted, found.respelled, found.twice)
        print(f"| `{name}` | {' | '.join(f'{number:,}' for number in numbers)} | {len(found.problems)} |", flush=True)
        print(*found.problems, sep="\n", end="", file=sys.stderr)
    for reason, names in absent.items():
        print(f"\nNot tried, {reason}: {' '.join(names)}.")


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
