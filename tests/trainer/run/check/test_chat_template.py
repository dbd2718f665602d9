"""The chat templates that TRL ships begin the policy's turn and write every message; without that they are found."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trl
from jinja2 import TemplateError
from transformers import AutoTokenizer

from evenkeel.trainer.run.check.prompts import left_out, missing_cue

TEMPLATES = sorted((Path(trl.__file__).parent / "chat_templates").glob("*.jinja"))
PROMPT = [{"role": "system", "content": "Be brief.\n\nAlways."}, {"role": "user", "content": "What  is <b> 2 + 2?\n"}]
OF_PARTS_ALONE = {"idefics3", "smolvlm"}
"""Their templates write content that comes in parts and leave out texts."""


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny_model, bos_token="<s>")


def written(tokenizer: Any) -> Iterator[str]:
    """The names of the templates, each in the tokenizer's place, that take plain texts."""
    for file in TEMPLATES:
        tokenizer.chat_template = file.read_text()
        try:
            tokenizer.apply_chat_template([*PROMPT[1:], {"role": "assistant", "content": "4"}], tokenize=False)
        except TemplateError:
            continue
        yield file.stem.removesuffix("_training")


@pytest.mark.slow
def test_none_lacks_its_cue_and_each_is_found_without_it(tokenizer: Any) -> None:
    found = 0
    for name in written(tokenizer):
        assert missing_cue(tokenizer, "") is None, name
        tokenizer.chat_template = re.sub(r"if add_generation_prompt\b", "if false", tokenizer.chat_template)
        cue = missing_cue(tokenizer, "")
        assert cue, name
        assert missing_cue(tokenizer, cue) is None, name  # what the check proposes
        found += 1
    assert found >= 60


def test_a_message_that_is_left_out_is_found(tokenizer: Any) -> None:
    assert {name for name in written(tokenizer) if left_out(tokenizer, PROMPT)} == OF_PARTS_ALONE
