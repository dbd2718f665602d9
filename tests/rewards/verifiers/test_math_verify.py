"""math-verify judges as TRL's ``accuracy_reward`` does, comes to an end, and measures beside another verifier."""

import json
from typing import Any

import pytest
from trl.rewards import accuracy_reward

from evenkeel.rewards import build_verifier
from evenkeel.rewards.references import check_rewards
from evenkeel.rewards.reward_function import reward_functions
from evenkeel.rewards.verifiers.math_verify import MathVerify
from tests.paths import ROOT

LABELLED = json.loads((ROOT / "rewards/bench/audit/labelled_math.json").read_text(encoding="utf-8"))
BOXED = [(f"Hence $\\boxed{{{pair['answer']}}}$.", pair["gold"]) for pair in LABELLED]
UNREADABLE = ["", " ", "no number"]
GOLDS = [*UNREADABLE, r"\text{east}", r"$\frac{1}{2}$", r"so $\boxed{\frac12}$", "0.5", r"50\%", "x", "$$", "1,5"]
COMPLETIONS = [
    "",
    "The final answer is $\\frac{1}{2}$. I hope it is correct.",
    "<think>\\boxed{\\frac12}</think> It is 3.",
    "\\boxed{1} and then \\boxed{\\frac{1}{2}}",
    "$x = 0.5$",
    "Answer: $50\\%$",
    "\\boxed{east}",
    "\\boxed{",
    "a\ud800b \\boxed{0.5}",
    "1/2",
]
ODD = [(completion, gold) for completion in COMPLETIONS for gold in GOLDS]
NO_TEXTS = [("\\boxed{5}", gold) for gold in (5, 5.0, None, ["5"], True)]


@pytest.mark.parametrize(
    "pairs",
    [
        [*ODD[::3], *NO_TEXTS, *BOXED[::20]],
        pytest.param([(completion, f"${gold}$") for completion, gold in BOXED], marks=pytest.mark.slow),
    ],
    ids=["odd ones", "golds in dollars"],
)
def test_it_scores_as_trls_reward_does(pairs: list[tuple[str, Any]]) -> None:
    completions, golds = zip(*pairs, strict=True)
    theirs = accuracy_reward([[{"content": each}] for each in completions], list(golds))
    verdicts = MathVerify().judge_all(completions, golds)
    assert {0.0, 1.0} <= set(theirs)
    assert [verdict.score for verdict in verdicts] == theirs
    assert all(verdict.reason for verdict in verdicts)


def test_what_no_signal_interrupts_costs_its_completion_alone() -> None:
    """In C, with GMP, the library's own timer is not heard. It is the gold's fault where that alone does not end."""
    verifier, endless = MathVerify(cpu_seconds=0.5), "$\\binom{1000000000}{500000000}$"
    cut, right, unusable = verifier.judge_all(
        [f"\\boxed{{{endless.strip('$')}}}", "\\boxed{3}", "\\boxed{3}"], ["3", "3", endless]
    )
    assert (cut.score, cut.killed) == (0.0, True)
    assert right.score == 1.0
    assert (unusable.score, unusable.killed) == (None, True)


def test_with_weight_0_what_it_cannot_parse_is_trained_by_the_others() -> None:
    verifiers = {"ours": build_verifier("math_answer"), "theirs": build_verifier("math_verify")}
    golds, rows = ["\\text{east}", "3\\sqrt{13}", "$2$"], [None] * 3
    calls: dict[str, Any] = {
        "prompts": [""] * 3,
        "completions": ["\\boxed{\\text{east}}", "\\boxed{3}", "\\boxed{2}"],
        "reference": golds,
    }
    measured = [function(**calls) for function in reward_functions(verifiers, only_measure={"theirs"})]
    assert measured == [[1.0, 0.0, 1.0], [None, 1.0, 1.0]]
    assert [function(**calls) for function in reward_functions(verifiers)] == [[None, 0.0, 1.0], [None, 1.0, 1.0]]
    tasks = dict.fromkeys(verifiers)
    assert check_rewards(verifiers, tasks, golds, rows, "data.train", only_measure={"theirs"}) == [0, 1, 2]
    assert check_rewards(verifiers, tasks, golds, rows, "data.train", max_unusable=2) == [2]
