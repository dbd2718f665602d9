"""Two verifiers of one run: the items on which they differ, in the evaluation's result and in the report."""

import json
from pathlib import Path
from typing import Any

from evenkeel.rewards import build_verifier
from evenkeel.rewards.reward_function import reward_functions
from evenkeel.trainer.evaluation import Decoding, EvaluationResult
from evenkeel.trainer.evaluation.decoding import Draw
from evenkeel.trainer.evaluation.judging import Answered, Tally
from evenkeel.trainer.lab.reports.contents import report_on
from tests.trainer.lab.reports.recorded_sweep import record_run

PAIRS = [
    ("3\\sqrt{13}", "\\boxed{3}"),  # a bare gold is read in part
    ("\\text{east}", "\\boxed{\\text{east}}"),  # and this one not at all
    ("$2$", "\\boxed{2}"),
    ("$2$", "<think>\\boxed{2}</think> No."),  # a box in the thought
    ("$5$", "\\boxed{6}"),
]


def scored(specs: dict[str, Any], token_ids: list[int]) -> EvaluationResult:
    verifiers = {name: build_verifier(spec) for name, spec in specs.items()}
    functions = {each.__name__: each for each in reward_functions(verifiers, only_measure={"math_verify"})}
    tally, texts = Tally(), [completion for _, completion in PAIRS]
    answered = Answered(["?"] * len(PAIRS), texts, [token_ids] * len(PAIRS), [1] * len(PAIRS), {})
    rows = [{"prompt": "?", "reference": gold, "group": None} for gold, _ in PAIRS]
    draws = [Draw(item, 0) for item in range(len(PAIRS))]
    tally.judge(draws, rows, answered, {1}, functions, [1.0] * len(specs), greedy=False)
    return EvaluationResult("test", 20, [Decoding()], tally.records, seconds=1.0)


def test_the_items_on_which_verifiers_differ_are_listed(tmp_path: Path) -> None:
    result = scored({name: name for name in ("math_answer", "math_verify", "format")}, [1])
    assert [record["correct"] for record in result.records] == [False, True, True, False, False]
    assert result.summary()["verifiers_differ"] == {"math_answer / math_verify": [0, 1, 3]}
    assert "math_answer / math_verify: 3 items on which they differ (0, 1, 3)" in str(result)
    run = record_run(tmp_path / "run")
    file = result.write(run / "evaluations").with_suffix(".json")
    assert json.loads(file.read_text())["verifiers_differ"] == {"math_answer / math_verify": [0, 1, 3]}
    table = report_on(run).tables["verifiers-differ"]
    assert [[cell.text for cell in row][1:] for row in table.rows] == [
        ["0", '"3\\\\sqrt{13}"', "math_answer: wrong", "math_verify: right"],
        ["1", '"\\\\text{east}"', "math_answer: right", "math_verify: unscored"],
        ["3", '"$2$"', "math_answer: wrong", "math_verify: right"],
    ]
    assert "cannot parse" in table.rows[1][4].note


def test_a_part_of_the_full_score_is_wrong_as_in_accuracy_and_no_token_at_all_is_not_cut_off() -> None:
    half, nothing = (lambda completion, reference: 0.5), (lambda completion, reference: 0.0)
    result = scored({"half": half, "nothing": nothing}, [])
    assert result.summary()["verifiers_differ"] == {"half / nothing": []}
    assert not any(record["truncated"] for record in result.records)
