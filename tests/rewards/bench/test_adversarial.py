"""The JSON of adversarial completions: what it may say, and what is refused."""

import json

import pytest

from evenkeel.rewards.bench.adversarial import AdversarialError, adversarial_completions, written_text


@pytest.mark.parametrize(
    "expression",
    [None, 3, ["a"], {"repeat": "a"}, {"repeat": "a", "times": -1}, {"join": "ab"}, {"repeat": "ab", "times": 10**9}],
    ids=str,
)
def test_what_is_no_text_is_refused(expression):
    with pytest.raises(ValueError, match=r"write a string|are more than"):
        written_text(expression)


def test_an_answer_is_tried_in_every_form(tmp_path):
    file = tmp_path / "attacks.json"
    file.write_text(json.dumps([{"name": "seven", "answer": "{7}"}, {"name": "raw", "completion": "x"}]))
    named = adversarial_completions(file)
    assert named["raw"] == "x"
    assert named["seven (boxed)"] == "<think>so</think>The answer is \\boxed{{7}}."
    assert len(named) == 5


@pytest.mark.parametrize("content", ["{}", "no json", '[{"name": "a"}]', '[{"name": "a", "completion": 3}]'])
def test_bad_files_are_named(tmp_path, content):
    file = tmp_path / "attacks.json"
    file.write_text(content)
    with pytest.raises(AdversarialError, match=r"attacks\.json"):
        adversarial_completions(file)
