"""Environments and tools through the whole trainer: each held-out row has its own, and training's stay as they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from evenkeel.rewards import build_verifier, reward_functions
from evenkeel.rewards.environments import build_environment
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation import decodings
from evenkeel.trainer.step.options import Evaluation
from tests.tiny_model import byte_tokenizer, tiny_config
from tests.trainer.step.without_torch import Guess, Meeting
from tests.trainer.training import made

SPECIAL = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
TARGET = 3
CALL = '<tool_call>\n{{"name": "guess", "arguments": {{"n": {}}}}}\n</tool_call><|im_end|>'
LAST = "done<|im_end|>"
SCRIPTS = ([3], [5, 3], [1], [])
"""What is guessed, by the rows of a batch in turn, before the last word. The first answer to each is another one."""
ANSWERS = ("right", "lower", "higher")


class Scripted(RLVRTrainer):
    """Writes what `SCRIPTS` say; all else is the real trainer's."""

    def _generate_single_turn(self, prompt_ids: list[list[int]], *_: Any, **__: Any) -> Any:
        written = []
        for row, ids in enumerate(prompt_ids):  # in later turns of the rows that called a tool alone
            answers = re.findall(r"<tool_response>\n(\w+)", self.processing_class.decode(ids))
            script = SCRIPTS[ANSWERS.index(answers[0]) if answers else row % len(SCRIPTS)]
            text = CALL.format(script[len(answers)]) if len(answers) < len(script) else LAST
            written.append(self.processing_class(text)["input_ids"])
        return written, None


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return tool_calling_tokenizer()


def tool_calling_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes and Qwen3's special tokens, with TRL's template of Qwen3."""
    made = byte_tokenizer("qwen3", pad_token="<|endoftext|>", eos_token="<|im_end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    made.add_tokens(SPECIAL)
    return made


def scripted(
    tokenizer: PreTrainedTokenizerFast,
    folder: Path,
    kind: type[Scripted] = Scripted,
    max_steps: int = 1,
    loss_type: str = "dapo",
    gradient_accumulation_steps: int = 1,
    **keywords: Any,
) -> Scripted:
    torch.manual_seed(0)
    config = tiny_config(
        vocab_size=len(tokenizer),
        num_hidden_layers=1,
        max_position_embeddings=2**15,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    settings: dict[str, Any] = {"max_completion_length": 700, "max_steps": max_steps, "loss_type": loss_type}
    settings |= {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 8}
    settings |= {"gradient_accumulation_steps": gradient_accumulation_steps, "learning_rate": 1e-6}
    settings["chat_template_kwargs"] = {"enable_thinking": False}
    row = {"prompt": [{"role": "user", "content": "Play."}], "target": TARGET, "reference": str(TARGET)}
    rows = Dataset.from_list([row] * 8)
    given = {"eval_dataset": rows.select(range(6)), "processing_class": tokenizer, "advantage": "rloo", **keywords}
    given["evaluation"] = Evaluation(0, decodings(1, 1.0, False))
    settings["reward"] = given.pop("reward_funcs", None)
    trainer: Scripted = made(kind, Qwen3ForCausalLM(config), folder, rows=rows, strategies=given, **settings)
    return trainer


def scored(trainer: Scripted) -> list[dict[str, Any]]:
    trainer.evaluate()
    (result,) = trainer.parts.held_out.newest
    return sorted(result.records, key=lambda record: record["item"])


def test_each_held_out_row_has_an_environment_of_its_own_and_those_of_training_stay_as_they_are(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
):
    trainer = scripted(tokenizer, tmp_path, environment_factory=Guess)
    records = scored(trainer)
    assert [record["reward"] for record in records] == [1.0, 1.0, 0.0, None, 1.0, 1.0]  # the scripts in turn
    assert {record["prompt"] for record in records} == {"Play. Guess a number."}
    assert {record["completion"] for record in records} == {"done"}
    last, call = (len(tokenizer(text)["input_ids"]) for text in (LAST, CALL.format(3)))
    assert [record["num_tokens"] for record in records[:4]] == [call + last, 2 * call + last, call + last, last]
    trainer.train()
    training = trainer.environments
    before = [(environment.turns, environment.is_right) for environment in training]
    assert before == [(1, True), (2, True), (1, False), (0, False)]
    assert [record["reward"] for record in scored(trainer)] == [1.0, 1.0, 0.0, None, 1.0, 1.0]
    assert trainer.environments is training
    assert [(environment.turns, environment.is_right) for environment in training] == before


def test_tools_of_different_rows_run_at_once(tokenizer: PreTrainedTokenizerFast, tmp_path: Path):
    functions = reward_functions({"environment": build_verifier("environment")})
    trainer = scripted(tokenizer, tmp_path, environment_factory=build_environment(Meeting), reward_funcs=functions)
    trainer.train()
    assert [environment.failure for environment in trainer.environments] == [None] * 4
    assert [environment._asked("get_reward") for environment in trainer.environments] == [1.0, 1.0, 0.0, None]
    logged = trainer.state.log_history[0]
    assert (logged["environment/calls"], logged["environment/turns"]) == (1.0, 2.0)
    assert logged["environment/provenance"] == 1.0


class Verbose(Guess):
    """Says more than a completion holds, or half a pair of surrogates."""

    def guess(self, n: int) -> str:
        answer = super().guess(n)
        return f"{answer} \udc00" if answer == "lower" else answer if answer == "right" else answer * 2_000_000

    guess.__doc__ = Guess.guess.__doc__


class WithHalves(Scripted):
    """Names a tool that there is not, too."""

    def _generate_single_turn(self, prompt_ids: list[list[int]], *rest: Any, **keywords: Any) -> Any:
        written, _ = super()._generate_single_turn(prompt_ids, *rest, **keywords)
        call = CALL.format('"\\ud800"').replace("guess", "\\ud801")
        written[-1] = self.processing_class(call if len(written) == 4 else LAST)["input_ids"]
        return written, None


def test_an_answer_that_no_completion_holds_and_half_a_surrogate_pair_end_their_row_at_most(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tokenized: list[int] = []
    encode = PreTrainedTokenizerFast._encode_plus

    def counted(self: Any, text: Any, *rest: Any, **keywords: Any) -> Any:
        tokenized.append(len(str(text)))
        return encode(self, text, *rest, **keywords)

    monkeypatch.setattr(PreTrainedTokenizerFast, "_encode_plus", counted)
    trainer = scripted(tokenizer, tmp_path, WithHalves, environment_factory=Verbose, reward_funcs=None)
    trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["environment/provenance"] == 1.0
    assert max(tokenized) < 100_000
    assert [len(messages) for messages in trainer._logs["completion"]] == [3, 5, 1, 3]
    assert trainer._logs["completion"][1][1]["content"] == "lower \ufffd"
    assert json.dumps([*trainer._logs["completion"]], ensure_ascii=False).count("\ufffd") == 2
