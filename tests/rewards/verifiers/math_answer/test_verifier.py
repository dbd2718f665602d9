"""What a verdict says, which references are usable, where the answer is read, what happens at a limit."""

import pickle

import numpy as np
import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards import Verdict, build_verifier
from evenkeel.rewards.isolation.workers import WorkerPool
from evenkeel.rewards.verifiers.math_answer import MathAnswer
from evenkeel.rewards.verifiers.math_answer import verifier as verifier_module
from tests.rewards.references import check_references


def box(answer: str) -> str:
    return f"<think> some thought </think> It is $\\boxed{{{answer}}}$."


def test_a_verdict_holds_its_evidence():
    right, wrong = MathAnswer()(box("0.5"), "1/2"), MathAnswer()(box("0.4"), "1/2")
    assert right == Verdict(1.0, "0.5", "equal to the reference '1/2'")
    assert wrong == Verdict(0.0, "0.4", "differs from the reference '1/2'")
    assert right.seconds is not None


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        ("42", "42", "43"),
        (42, "42", "42.5"),
        (142.0, "142", "141"),
        (0.1, "0.1", "0.2"),
        (np.int64(7), "7", "8"),
        (np.float64(2.5), "2.5", "2"),
        ("$\\frac{1}{2}$", "0.5", "2"),
        ("So we get \\boxed{9} apples.", "9", "8"),
        ("48 / 2 = <<48/2=24>>24\n#### 1,024", "1024", "24"),
        (["\\pi r^2", "area"], "r^2 \\pi", "r^2"),
        (np.array(["3", "4"]), "4", "5"),
        (["10^{-3}", 7], "7", "1"),
    ],
    ids=str,
)
def test_references_are_texts_numbers_or_alternatives(reference, right, wrong):
    verifier = MathAnswer(workers=1)
    gold = verifier.gold_completion(reference)
    assert gold is not None
    assert [verdict.score for verdict in verifier.judge_all([box(right), box(wrong), gold], [reference] * 3)] == [
        1,
        0,
        1,
    ]


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "  ",
        "$$",
        None,
        True,
        [],
        ["5", ""],
        {"answer": "5"},
        float("nan"),
        float("inf"),
        "\\frac{1}{2",
        "#### ",
        b"5",
    ],
    ids=repr,
)
def test_an_unusable_reference_is_unscored_and_says_what_to_do(reference):
    verdict = MathAnswer()(box("5"), reference)
    assert verdict.score is None
    assert any(word in verdict.reason for word in ("remove", "map", "correct"))
    assert MathAnswer().gold_completion(reference) is None
    with pytest.raises(Refusal, match="row 1"):
        check_references(MathAnswer(), ["5", reference], "data.train")


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("\\boxed{5}", "5"),
        ("\\boxed{4} no, \\boxed{5}", "5"),
        ("\\boxed{5} no, \\boxed{4}", "4"),
        ("\\boxed {5}", "5"),
        ("\\fbox{5}", "5"),
        ("\\boxed{\\frac{a}{b}}", "\\frac{a}{b}"),
        ("\\boxed{\\boxed{5}}", "\\boxed{5}"),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("{ unpaired \\boxed{5} }} }", "5"),
        ("Put it in \\boxed{. So \\boxed{5}", "5"),
        ("<think>\\boxed{4}</think>\\boxed{5}<|im_end|>", "5"),
        ("$x=\\boxed{2}$ or $x=\\boxed{5}$.", "2, 5"),
        ("\\boxed{2} fails, so \\boxed{5}", "5"),
        ("\\boxed{5} \\boxed{5}", "5"),
        ("\\boxed{1}\\boxed{2}\\boxed{5}", "1, 2, 5"),
        ("<think>\\boxed{5}</think> 5", None),
        ("<think>\\boxed{5}", None),
        ("\\boxed{5", None),
        ("\\boxed{4} and \\boxed{5", None),
        ("\\boxed{4} and \\boxed{\\frac{1}{2}", None),
        ("boxed{5}", None),
        ("5", None),
        ("", None),
    ],
)
def test_the_answer_is_the_last_closed_box_after_the_thought(completion, answer):
    assert MathAnswer(workers=1)(completion, "5").answer == answer
    assert MathAnswer(workers=1)(completion, "5").score == float(answer in ("5", "\\boxed{5}"))


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<answer>5</answer>", 1),
        ("<think>4</think><answer> $\\boxed{5}$ </answer>", 1),
        ("<answer>5</answer> or so", 0),
        ("<answer>4</answer><answer>5</answer>", 0),
        ("\\boxed{5}", 0),
        ("<think><answer>5</answer></think>", 0),
    ],
)
def test_the_answer_in_tags(completion, score):
    verifier = build_verifier({"name": "math_answer", "answer_in": "answer_tag"})
    assert verifier(completion, "5").score == score
    gold = verifier.gold_completion("5")
    assert gold is not None
    assert verifier(gold, "5").score == 1


def test_an_unknown_place_is_refused():
    with pytest.raises(ValueError, match=r"'boxed'.*'answer_tag'"):
        MathAnswer(answer_in="tags")  # type: ignore[arg-type]


def test_algebra_that_is_cut_off_is_wrong_and_counted(monkeypatch):
    monkeypatch.setattr("evenkeel.rewards.verifiers.math_answer.verifier.too_costly", lambda answer, gold: "")
    costly = box("(-8)^{\\frac{999999999}{7}}")
    before, killed, after = MathAnswer(cpu_seconds=0.5, workers=1).judge_all(
        [box("2\\cdot\\sqrt{3}"), costly, box("\\sqrt{3}\\cdot2")], ["2\\sqrt{3}"] * 3
    )
    assert (killed.score, killed.killed) == (0.0, True)
    assert "cpu_limit" in killed.reason
    assert (before.score, after.score, before.killed) == (1.0, 1.0, False)


@pytest.mark.parametrize(
    "answer", ["9^{9\\cdot 9^{9}}", "9^{9⁹}", "2^{99!}", "9^{9{,}999{,}999}", "9^{\\sqrt{9^{99}}}"]
)
def test_a_costly_exponent_reaches_no_worker_however_it_is_spelled(answer):
    verdict = MathAnswer(workers=1)(box(answer), "2\\sqrt{3}")
    assert (verdict.score, verdict.killed) == (0.0, False)
    assert verdict.reason.startswith("no algebra is done with it: it holds a")


def test_a_judge_that_fails_leaves_its_row_unscored(monkeypatch):
    monkeypatch.setattr(
        MathAnswer,
        "_pool",
        lambda self: WorkerPool("tests.rewards.verifiers.math_answer.failing_judge:judge", workers=1),
    )
    verdict = MathAnswer()(box("\\sqrt{3}\\cdot 2"), "2\\sqrt{3}")
    assert verdict.score is None
    assert "the judge failed: raised: RuntimeError: out of order" in verdict.reason


FAILING_ANSWERS = [
    "y=\\frac{1}{10}\\left(\\begin{array}{ll}1&0\\\\0&3\\end{array}\\right)x",  # its judge raises TypeError
    "\\left(\\begin{array}{ll}1&0\\\\0&3\\end{array}\\right)x",  # and this
    pytest.param("(-8)^{\\frac{999999999}{7}}", marks=pytest.mark.slow),  # without end, inside C
]


@pytest.mark.parametrize("answer", FAILING_ANSWERS)
def test_no_answer_makes_itself_unscored(answer, monkeypatch):
    monkeypatch.setattr("evenkeel.rewards.verifiers.math_answer.verifier.too_costly", lambda answer, gold: "")
    golds = ["5x - 7y + 11z + 4 = 0", "x^5-x^4+x^3-x^2+x-1", "2\\sqrt{3}", "(\\sqrt{2}, x)"]
    judge = MathAnswer(cpu_seconds=1.0, workers=1)
    verdicts = judge.judge_all([box(answer)] * len(golds), golds)
    assert [verdict.score for verdict in verdicts] == [0.0] * len(golds), verdicts
    assert [verdict.score for verdict in judge.judge_all([box(gold) for gold in golds], golds)] == [1.0] * len(golds)


@pytest.mark.parametrize("target", ["read_beside", "same", "too_long_or_deep"])
def test_an_answer_that_breaks_its_reader_is_wrong(target, monkeypatch):
    original = getattr(verifier_module, target)

    def broken(*arguments):
        if any("7^{y}" in repr(argument) for argument in arguments):
            raise RecursionError("maximum recursion depth exceeded")
        return original(*arguments)

    monkeypatch.setattr(verifier_module, target, broken)
    verdicts = MathAnswer(workers=1).judge_all([box("7^{y}"), box("6^{y}")], ["6^{y}"] * 2)
    assert [verdict.score for verdict in verdicts] == [0.0, 1.0]


@pytest.mark.slow
def test_a_gold_that_fails_alone_is_unscored_and_refused_before_training(monkeypatch):
    monkeypatch.setattr("evenkeel.rewards.verifiers.math_answer.verifier.too_costly", lambda answer, gold: "")
    gold, judge = "(-8)^{\\frac{999999999}{7}}x", MathAnswer(cpu_seconds=0.5, workers=1)
    verdict = judge(box("x+1"), gold)
    assert verdict.score is None
    assert "the judge failed: cpu_limit" in verdict.reason
    with pytest.raises(Refusal, match=r"row 1: a plain wrong answer, .*5741.*: the judge f"):
        check_references(judge, ["5", gold], "data.train")


def test_a_gold_against_which_all_is_right_is_refused(monkeypatch):
    assert MathAnswer().wrong_completion("(1, x]") == "\\boxed{(\\frac{5741}{8191}, \\frac{5741}{8191}]}"
    monkeypatch.setattr(verifier_module, "same", lambda gold, answer, algebra: True)
    with pytest.raises(Refusal, match=r"row 0: a plain wrong answer, .*5741.*, scores 1.0.*: equal to"):
        check_references(MathAnswer(workers=1), ["2\\sqrt{3}"], "data.train")


def test_what_is_plain_needs_no_worker():
    verifier = MathAnswer(cpu_seconds=3.25, workers=1)  # options of its own: no pool of another test is running
    golds = ["5", "\\frac{1}{2}", "\\text{east}", "(1, 2]", "\\{1,2\\}", "101_2", "2\\sqrt{3}"]
    completions = [verifier.gold_completion(gold) or "" for gold in golds]
    assert [verdict.score for verdict in verifier.judge_all(completions + [box("x^9!")] * 6, golds + golds[:6])] == [
        1
    ] * 7 + [0] * 6
    from evenkeel.rewards.isolation.workers import pool

    assert verifier._pool() not in pool._groups


@pytest.mark.slow
def test_the_batch_and_the_number_of_workers_change_nothing():
    answers = ["\\frac{2}{\\sqrt{2}}", "1.41421356", "2^{1/2}", "\\sqrt{3}", "2\\sqrt{2}/2", "(", "", "x"] * 2
    completions, golds = [box(answer) for answer in answers], ["\\sqrt{2}"] * 16
    alone = [MathAnswer(workers=1)(completion, gold) for completion, gold in zip(completions, golds, strict=True)]
    assert MathAnswer(workers=2).judge_all(completions, golds) == alone
    assert [verdict.score for verdict in alone[:8]] == [1, 0, 1, 0, 1, 0, 0, 0]


def test_picklable_and_registered():
    verifier = build_verifier({"name": "math_answer", "workers": 2})
    assert pickle.loads(pickle.dumps(verifier)) == verifier == MathAnswer(workers=2)


@pytest.mark.parametrize(
    ("gold", "answer", "score"),
    [
        ("1024", "2^{10}", 1),
        ("1024", "N = 2^{10}", 0),
        ("1024", "2^{11}", 0),
        ("40", "2^3 \\cdot 5", 1),
        ("720", "6!", 1),
        ("720", "7!", 0),
        ("-243", "-3^5", 1),
        ("5", "2+3", 0),
        ("10", "\\binom{5}{2}", 0),
        ("1024", "2^{99999999}", 0),
    ],
)
def test_powers_and_factorials_need_not_be_worked_out_where_the_option_says_so(gold, answer, score):
    assert MathAnswer(workers=1, unevaluated_powers=True)(box(answer), gold).score == score
    assert MathAnswer(workers=1)(box(answer), gold).score == 0


@pytest.mark.parametrize(
    ("gold", "written"),
    [
        ("$69$,$84$", "69 , 84"),
        ("$125$ miles", "125  miles"),
        ("-$$\\frac79$$", "- \\frac79"),
        ("$5", "$5"),
        ("\\$5", "\\$5"),
    ],
)
def test_a_gold_is_tried_as_a_model_would_write_it(gold, written):
    completion = MathAnswer().gold_completion(gold)
    assert completion is not None
    assert " ".join(completion.split()) == f"\\boxed{{{' '.join(written.split())}}}"
    assert MathAnswer(workers=1)(completion, gold).score == 1
