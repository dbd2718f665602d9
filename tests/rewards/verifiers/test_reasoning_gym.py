"""The library's tasks: scored in the sandbox, only in full, and never by a text that acts."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from evenkeel.rewards import GENERATORS, build_verifier
from evenkeel.rewards.verifiers.reasoning_gym import guard
from tests.rewards.references import check_references

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason='reasoning_gym is not installed: pip install -e ".[dev]"'
)


def entry(task, answer, **metadata):
    return {"task": task, "entry": json.dumps({"question": "?", "answer": answer, "metadata": metadata})}


COUNTDOWN = entry("countdown", "-1 + 5*7", numbers=[1, 5, 7], target=34)
PUZZLE24 = entry("puzzle24", "6*4*1*1", numbers=[6, 4, 1, 1])
INTEGRAL = entry("simple_integration", "X**2 + C", integrand="2*X", variable="X")
STRING = entry("string_insertion", "ABCA")
QUEENS = entry("n_queens", "_ Q\nQ _", valid_answers=["_ Q\nQ _"])
SUM = entry("chain_sum", "12")
APPLES, HALTS, WORD = (
    entry(task, answer)
    for task, answer in (("gsm_symbolic", "288"), ("game_of_life_halting", "False"), ("spell_backward", "ainomma"))
)
KNIGHTS = entry("knights_knaves", "Zoey is an angel, and Owen is a devil.")


@pytest.fixture(scope="module")
def verifier():
    return build_verifier({"name": "reasoning_gym", "cpu_seconds": 1.0})


def answered(answer):
    return f"<think>so</think><answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        (COUNTDOWN, ["-1 + 5*7", "5*7-1", "7 * 5 - 1"], ["5*7", "34", "5*7-1+0", "35-1", "5*7-1 # 1"]),
        (PUZZLE24, ["6*4*1*1", "6*4/1/1"], ["8*3*1*1", "6*4", "12*2*1*1"]),
        (INTEGRAL, ["X**2 + C", "X**2", "X*X + 7"], ["X**3", "2*X", "C"]),
        (STRING, ["ABCA"], ["ABC", "['A', 'B', 'C', 'A']", "ABCAA"]),
        (QUEENS, ["_ Q\nQ _"], ["Q _\n_ Q", "[['_', 'Q'], ['Q', '_']]"]),
        (
            KNIGHTS,
            ["Zoey is an angel, and Owen is a devil.", "owen is a devil\nZoey is an angel"],
            [
                "Zoey is an angel, and Owen is a devil. or 5",
                "if Zoey is an angel, Owen is a devil",
                "never: Zoey is an angel, and Owen is a devil",
                "Zoey is an angel, and Owen is an angel",
                "Zoey is an angel",
                "Zoey is an angel and a devil and Owen is a devil and Owen is an angel",
            ],
        ),
        (APPLES, ["288", "$288", "288.0"], ["288 or 560", "not 288", "1 to 288", "560"]),
        (HALTS, ["False", "false"], ["True", "0", "False or True", "no"]),
        (WORD, ["ainomma", "Ainomma"], ["ainommas", "ainomma or talps", "ammonia"]),
        (SUM, ["12"], ["12 or 13", "the number 12", "13", "", "1 2"]),
    ],
    ids=lambda value: value["task"] if isinstance(value, dict) else None,
)
def test_only_the_full_score_counts(verifier, reference, right, wrong):
    texts = [answered(answer) for answer in right + wrong]
    verdicts = verifier.judge_all(texts, [reference] * len(texts))
    assert [verdict.score for verdict in verdicts] == [1.0] * len(right) + [0.0] * len(wrong), verdicts
    assert verifier.gold_completion(reference) is not None
    check_references(verifier, [reference], "data.train")


ATTACKS = {
    "system": "__import__('os').system('touch {file}')",
    "the verdict printed": "print('{{\"score\": 1.0}}')",
    "exit": "exit(0)",
    "frames": "[f for f in (lambda: 0).__globals__]",
    "attribute": "(1).real",
    "one-letter sympify": "S('__import__(\"os\").getpid()')",
    "open": "open('{file}', 'w')",
    "a generator": "[a for a in [1]]",
    "an assignment": "(answer := 34)",
    "a comment": "5*7-1 # 1",
    "powers": "9**9**9**9",
    "an f-string": "f'{{1}}'",
}


@pytest.mark.parametrize("reference", [COUNTDOWN, PUZZLE24, INTEGRAL, STRING, QUEENS, SUM], ids=lambda r: r["task"])
def test_a_text_that_would_act_is_wrong_and_does_nothing(verifier, reference, tmp_path):
    file = tmp_path / "written"
    texts = [answered(attack.format(file=file)) for attack in ATTACKS.values()]
    verdicts = verifier.judge_all(texts, [reference] * len(texts))
    assert [verdict.score for verdict in verdicts] == [0.0] * len(texts)
    assert not file.exists()


def test_every_scorer_that_evaluates_is_guarded():
    """Over the source of the installed version: a new one must be added to the table."""
    evaluating = re.compile(r"(?<![\w.])eval\(answer|parse_expr\(answer|sympify\(answer|exec\(answer|S\(answer")
    root = Path(importlib.util.find_spec("reasoning_gym").origin).parent
    found = {file.stem for file in root.rglob("*.py") if evaluating.search(file.read_text(encoding="utf-8"))}
    assert found == set(guard.EVALUATED)


def test_a_scorer_that_takes_too_long_is_cut_off():
    verifier = build_verifier({"name": "reasoning_gym", "cpu_seconds": 0.5})
    verdict = verifier(answered("9**9**9**9*X"), INTEGRAL)
    assert (verdict.score, verdict.killed) == (0.0, True), verdict


@pytest.mark.parametrize(
    "reference",
    [
        None,
        {"task": "chain_sum"},
        {"task": "chain_sum", "entry": "no json"},
        {"task": "no_such_task", "entry": SUM["entry"]},
        {**SUM, "config": '{"no_such_option": 1}'},
        entry("n_queens", "_ Q"),
    ],
    ids=str,
)
def test_an_unusable_reference_is_unscored(verifier, reference):
    wrong = verifier("<answer>x</answer>", reference)
    assert wrong.score is None or reference["task"] == "n_queens"  # whose scorer looks into the entry for a text only


@pytest.mark.slow
def test_every_task_accepts_its_own_answer_and_nothing_beside_it(verifier):
    from reasoning_gym.factory import DATASETS

    without = set()
    for task in sorted(set(DATASETS) - {"composite"}):
        rows = GENERATORS["reasoning_gym"](part="train", task=task, train=2, test=0, seed=1)
        references = [row["reference"] for row in rows]
        check_references(verifier, references, task)
        gold = json.loads(references[0]["entry"])["answer"]
        if not isinstance(gold, str):
            without.add(task)
            continue
        texts = [answered(f"not {gold}"), answered(f"{gold} or 17"), answered("x")]
        paid = [verdict.answer for verdict in verifier.judge_all(texts, references[:1] * 3) if verdict.score != 0]
        assert not paid, (task, gold)
    assert without == {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
