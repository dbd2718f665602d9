"""The recipes' column mappings, on one row written by hand in the form in which each set is published."""

import base64
import json
import pickle
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards import build_verifier
from evenkeel.trainer.run.config import Source, load_config
from evenkeel.trainer.run.data.rows import load_rows
from tests.paths import ROOT
from tests.rewards.references import check_references

CONFIGS = ROOT / "configs"
ROOMS = {"math": "*_*b", "code": "*_*b", "mixed": "*_*b", "evaluation": "*"}
RECIPES = [path for room, name in ROOMS.items() for path in sorted((CONFIGS / room).glob(f"{name}.yaml"))]

DOUBLE = "```python\ndef double(x):\n    return 2 * x\n```"
SUM_OF_LINE = "```python\nprint(sum(map(int, input().split())))\n```"
SOLUTION = "```python\nclass Solution:\n    def double(self, x):\n        return 2 * x\n```"
STDIN = [{"input": "1 2\n", "output": "3\n"}, {"input": "4 5\n", "output": "9\n"}]
ANSWER, WRONG = "so it is \\boxed{7}", "so it is \\boxed{8}"

DEEPCODER = "agentica-org/DeepCoder-Preview-Dataset"
PAIRS = json.dumps({"inputs": ["1 2\n", "4 5\n"], "outputs": ["3\n", "9\n"]})
TYPED = json.dumps([{"type": "stdin_stdout", **case, "fn_name": None} for case in STDIN])
READ = json.dumps([{**case, "testtype": "stdin"} for case in STDIN])
CALLED = json.dumps([{"input": "2", "output": "4", "testtype": "functional"}])
STARTER = "class Solution:\n    def double(self, x):\n"


def of_livecodebench(cases: str, function: str = "") -> dict[str, str]:
    """The columns of tests, the hidden ones pickled and compressed as they are published."""
    hidden = base64.b64encode(zlib.compress(pickle.dumps(cases))).decode()
    tests = {"public_test_cases": cases, "private_test_cases": hidden}
    return {**tests, "starter_code": STARTER * bool(function), "metadata": json.dumps({"func_name": function or None})}


ANSWERED = {
    "math-ai/aime25": {"problem": "$3+4$?", "answer": "7", "id": "0"},
    "math-ai/amc23": {"question": "$3+4$?", "answer": "7.0", "id": 0, "url": "…"},
    "math-ai/minervamath": {"question": "$3+4$?", "answer": "7"},
    "AI-MO/aimo-validation-amc": {"id": 0, "problem": "$3+4$?", "answer": 7.0, "url": "…"},
    "HuggingFaceH4/aime_2024": {"id": 60, "problem": "$3+4$?", "solution": "…", "answer": "007", "year": "2024"},
    "MathArena/hmmt_feb_2025": {"problem_idx": 1, "problem": "$3+4$?", "answer": "7", "problem_type": ["Algebra"]},
}
PUBLISHED: list[tuple[tuple[str | None, str | None], Any, str]] = [
    *[((name, None), row, ANSWER) for name, row in ANSWERED.items()],
    (
        ("Hothan/OlympiadBench", "OE_TO_maths_en_COMP"),
        {"question": "$3+4$?", "context": None, "final_answer": ["$7$"], "subfield": "Algebra"},
        ANSWER,
    ),
    (
        ("deepscaler_uniform_train.parquet", None),
        {"prompt": [{"role": "user", "content": "$3+4$?"}], "reward_model": {"ground_truth": "7", "style": "rule"}},
        ANSWER,
    ),
    *[
        (("test6.jsonl", None), {"question_content": "…", "difficulty": "easy", **tests}, program)
        for tests, program in ((of_livecodebench(READ), SUM_OF_LINE), (of_livecodebench(CALLED, "double"), SOLUTION))
    ],
    (("openai/gsm8k", "main"), {"question": "3 + 4?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"}, ANSWER),
    (
        ("DigitalLearningGmbH/MATH-lighteval", "default"),
        {"problem": "$3+4$?", "level": "Level 1", "type": "Algebra", "solution": "It is $\\boxed{7}$."},
        ANSWER,
    ),
    (
        ("HuggingFaceH4/MATH-500", None),
        {"problem": "$3+4$?", "solution": "…", "answer": "7", "subject": "Algebra", "level": 1, "unique_id": "t"},
        ANSWER,
    ),
    (("agentica-org/DeepScaleR-Preview-Dataset", None), {"problem": "$3+4$?", "answer": "7", "solution": "…"}, ANSWER),
    (
        ("Open-Reasoner-Zero/orz_math_57k_collection", None),
        [
            {"from": "human", "value": "$3+4$?"},
            {"from": "assistant", "ground_truth": {"value": "7", "pass_at_n": None}},
        ],
        ANSWER,
    ),
    (
        ("google-research-datasets/mbpp", "full"),
        {
            "task_id": 1,
            "text": "Write a function to double a number.",
            "code": "def double(x):\r\n  return x + x",
            "test_list": ["assert double(2) == 4", "assert double(-1) == -2"],
            "test_setup_code": "",
            "challenge_test_list": [],
        },
        DOUBLE,
    ),
    (
        ("openai/openai_humaneval", None),
        {
            "task_id": "HumanEval/0",
            "prompt": 'def double(x: int) -> int:\n    """Twice x."""\n',
            "canonical_solution": "    return x + x\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
            "entry_point": "double",
        },
        DOUBLE,
    ),
    (
        ("likaixin/TACO-verified", None),
        {
            "question": "Read two numbers, print their sum.",
            "starter_code": "",
            "input_output": PAIRS,
            "solutions": "[]",
        },
        SUM_OF_LINE,
    ),
    ((DEEPCODER, "primeintellect"), {"problem": "Sum.", "solutions": [], "tests": TYPED}, SUM_OF_LINE),
    (
        (DEEPCODER, "taco"),
        {"problem": "Sum.", "tests": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})},
        SUM_OF_LINE,
    ),
    (
        (DEEPCODER, "lcbv5"),
        {"problem": "Sum.", "starter_code": "", "tests": READ, "metadata": {"func_name": None}},
        SUM_OF_LINE,
    ),
    (
        (DEEPCODER, "lcbv5"),
        {"problem": "Double it.", "starter_code": STARTER, "tests": CALLED, "metadata": {"func_name": "double"}},
        SOLUTION,
    ),
]


def sources() -> list[Any]:
    """The stored sources of all recipes, each way to read a set once, with the verifier of its rows."""
    found: dict[str, Any] = {}
    for path in RECIPES:
        config = load_config(path, ["model.name_or_path=x"], evaluation_only=path.parent.name == "evaluation")
        for name, source in chain(config.data.train_sources.items(), config.data.test_sources.items()):
            verifier = next(reward.verifier for reward in config.rewards if reward.task in (None, source.task))
            if source.path is not None:
                key = repr((source.path, source.config_name, source.columns, verifier))
                found.setdefault(key, pytest.param(source, verifier, id=f"{path.parent.name}-{path.stem}-{name}"))
    return list(found.values())


@pytest.mark.parametrize(("source", "verifier"), sources())
def test_the_reference_of_a_published_row_scores(source: Source, verifier: Any, tmp_path: Path) -> None:
    rows = [(row, right) for name, row, right in PUBLISHED if name == (source.path, source.config_name)]
    assert rows
    (tmp_path / "rows.json").write_text(json.dumps([row for row, _ in rows]))
    stored = source.model_copy(update={"path": str(tmp_path / "rows.json"), "split": None, "config_name": None})
    loaded = load_rows([stored], generators={}, system_prompt=None, base_dir=tmp_path)
    judge = build_verifier(verifier)
    references = loaded["reference"][:]
    verdicts = judge.judge_all([right for _, right in rows], references)
    assert [verdict.score for verdict in verdicts] == [1.0] * len(rows), [verdict.reason for verdict in verdicts]
    wrong = [WRONG if right == ANSWER else right.replace("2 *", "3 *").replace("sum", "min") for _, right in rows]
    assert {verdict.score for verdict in judge.judge_all(wrong, references)} == {0.0}
    check_references(judge, references, str(source.path))


def test_asserts_and_code_to_start_from_stand_in_the_prompts() -> None:
    """Without them the name of the function that is called would be a guess."""
    for source in (parameter.values[0] for parameter in sources()):
        if source.columns.prompt.startswith("{text}"):
            assert "{test_list}" in source.columns.prompt
        if source.config_name == "lcbv5" or source.path in ("likaixin/TACO-verified", "test6.jsonl"):
            assert "{starter_code}" in source.columns.prompt
