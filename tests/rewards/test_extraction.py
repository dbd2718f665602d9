"""Where a completion states its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.extraction import after_thought, answer_block, code_block
from tests.rewards.bounded import ends_in_bounded_time


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (" 42 \n", "42"),
        ("<think>no</think> 42", "42"),
        ("a</think>b</think>c", "c"),
        ("a</think><think>b", None),
        ("<think>a", None),
        ("42<|im_end|>", "42"),
        ("42 <|im_end|>\n<|endoftext|>", "42"),
        ("<|im_end|>42", "<|im_end|>42"),
    ],
)
def test_after_thought(completion, text):
    assert after_thought(completion).text == text


@pytest.mark.parametrize(
    ("completion", "text", "problem"),
    [
        ("<answer> 42 </answer>", "42", ""),
        ("<think><answer>1</answer></think> so: <answer>42</answer></s>", "42", ""),
        ("42", None, "no answer block after the thought"),
        ("<think><answer>42</answer></think>", None, "no answer block after the thought"),
        ("<think><answer>42</answer>", None, "the thought is not closed"),
        ("<answer>1</answer><answer>2</answer>", None, "2 opening and 2 closing answer tags after the thought"),
        ("<answer>42", None, "1 opening and 0 closing"),
        ("</answer>42<answer>", None, "does not end with the answer block"),
        ("<answer>42</answer> or 43", None, "does not end with the answer block"),
    ],
)
def test_answer_block(completion, text, problem):
    extraction = answer_block(completion)
    assert extraction.text == text
    assert problem in extraction.problem


_TAGS = st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "x", " "])


@given(st.lists(_TAGS, max_size=12).map("".join))
def test_an_answer_block_holds_no_tag_and_stands_last(completion):
    block = answer_block(completion)
    assert (block.text is None) == bool(block.problem)
    if block.text is not None:
        assert "answer>" not in block.text
        assert "think>" not in block.text
        assert completion.rstrip().endswith("</answer>")


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("```python\nprint(1)\n```\nor\n```python\nprint(2)\n```", "print(2)"),
        ("```python\nprint(1)\n```\nwhich writes\n```\n1\n```", "print(1)"),
        ("```\nprint(1)\n```\n```bash\npython x.py\n```", "print(1)"),
        ("Use ```python\nprint(1)``` so", "print(1)``` so"),
        ("Use ```python\nprint(1)```\nso", "print(1)"),
        ("~ ```Python3\r\nprint(1)\r\n```", "print(1)\r"),
        ("```python\nprint(1)", "print(1)"),
        ("```Python 3\nprint(1)\n```\n```\n1\n```", "print(1)"),
        ("```python main.py\nprint(1)\n```", "print(1)"),
        ("```{.python}\nprint(1)\n```\n```python3.11\nprint(2)\n```\n```\n2\n```", "print(2)"),
        ("```pytest\npytest x\n```\n```\nprint(1)\n```", "print(1)"),
        ("```python\nprint(1)\n```\n```python-repl\n>>> 1\n```", "print(1)"),
        ("```python\nprint(1)\n```\n```python_traceback\nError\n```", "print(1)"),
        ("```python\nprint(1)\n```\n```python.log\n1\n```", "print(1)"),
        ("```python\nprint(1)\n```\n```Python 3 output\n1\n```", "print(1)"),
        ("Then ```python is how\n```python\nprint(1)\n```", "print(1)"),
        ("Write ```x = 1``` or:\n```py\nx = 2\n```", "x = 2"),
        ("````python\nprint(1)\n````", "print(1)"),
        ("1. as a list:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y"),
        ("```python\ns = '``` in a text'\n```", "s = '``` in a text'"),
        ("<think>```python\nprint(1)\n```</think>print(2)", "print(2)"),
        ("<think>x</think><answer>\nprint(1)\n</answer>", "print(1)"),
        ("<answer>```\nprint(1)\n```</answer>", "print(1)"),
        ("<think>```python\nprint(1)\n```", None),
        ("```python\n```", None),
        ("", None),
    ],
)
def test_code_block(completion, code):
    assert code_block(completion).text == code


@pytest.mark.parametrize("piece", ["```\n", "`", "```python\n", " ", "\n", "```x```", "<think>"])
def test_code_block_is_linear(piece):
    assert ends_in_bounded_time("evenkeel.rewards.extraction:code_block", piece * (2_000_000 // len(piece)))
