"""Every adversarial completion is ended by the verifier's own limits and earns nothing; so without the guard."""

import random

import gmpy2
import pytest
from sympy.external.gmpy import GROUND_TYPES

from evenkeel.rewards.bench.adversarial import built_in
from evenkeel.rewards.verifiers.math_answer import MathAnswer, verifier

JUDGE = MathAnswer(workers=1)


def test_the_workers_compute_with_gmpy2():
    assert gmpy2.version()
    assert GROUND_TYPES.startswith("gmpy")


GOLDS = ["3\\sqrt{13}", "5", "x^2+1", "(1,2]", "\\begin{pmatrix} 1 \\\\ \\sqrt{2} \\end{pmatrix}"]


@pytest.mark.parametrize(
    "gold", [gold if gold == "5" else pytest.param(gold, marks=pytest.mark.slow) for gold in GOLDS]
)
def test_no_adversarial_completion_is_paid_or_unscored(gold):
    completions = built_in()
    assert {"nested integrals (boxed)", "a box in the thought"} <= set(completions)
    verdicts = JUDGE.judge_all(list(completions.values()), [gold] * len(completions))
    scored = dict(zip(completions, verdicts, strict=True))
    assert {name: verdict for name, verdict in scored.items() if verdict.score != 0} == {}


UNGUARDED = ["9^{9^{9^9}}", "10000000!", "\\binom{10^9}{5\\cdot10^8}", "\\int_0^1 x^x dx", "{" * 16 + "x" + "}" * 16]


@pytest.mark.slow
def test_without_the_guard_the_kernel_ends_them(monkeypatch):
    monkeypatch.setattr(verifier, "too_costly", lambda answer, gold: "")
    monkeypatch.setattr(verifier, "too_long_or_deep", lambda answer, gold: "")
    judge = MathAnswer(cpu_seconds=1.0, workers=2)
    completions = [f"\\boxed{{{answer}}}" for answer in [*UNGUARDED, "\\sqrt{2}\\sqrt{3}"]]
    *bad, good = judge.judge_all(completions, ["\\sqrt{6}"] * len(completions))
    assert [verdict.score for verdict in bad] == [0] * len(UNGUARDED)
    assert any(verdict.killed for verdict in bad)
    assert good.score == 1


PIECES = r"""\frac{1}{0} \infty \left[\begin{array}{ll}1&0\\0&3\end{array}\right] \begin{pmatrix}1&2\\3&4\end{pmatrix}
x y = < \le \ne \{1,2\} (1,2) \emptyset \in + - \cdot ^{2} ^{x} _{1} \log \sin \sqrt{2} \sqrt{x} i e \pi ! !! \int dx
\frac{d}{dx} \sum_{n=1}^{3} n \lim_{x\to0} |x| \lfloor \rfloor \binom{x}{2} \max \vec{a} A^{-1} A^{T} ' \nabla
f(x) \text{if} \cup \pm \pmod{3} NaN 0^0 \log_1 2 3 0.5 \overline{z} \Gamma(0) \det \angle \times \% \oplus
x^{x^{x}} (x+1) [ ] ( )""".split()  # noqa: SIM905 — as a list it would be sixty lines
EXPRESSIONS = [*GOLDS, "5x-7y+11z+4=0", "x^5-x^4+x^3-x^2+x-1", "(\\sqrt{2},x)", "y=2x+1", "AB^{-1}", "x<\\sqrt{2}"]


@pytest.mark.slow
def test_no_heap_of_pieces_is_unscored():
    draw = random.Random(18)
    answers = ["".join(draw.choices(PIECES, k=draw.randint(1, 7))) for _ in range(300)]
    answers.append("y=\\frac{1}{10}\\left(\\begin{array}{ll}1&0\\\\0&3\\end{array}\\right)x")
    pairs = [(gold, answer) for gold in EXPRESSIONS for answer in answers]
    verdicts = JUDGE.judge_all([f"\\boxed{{{answer}}}" for _, answer in pairs], [gold for gold, _ in pairs])
    assert [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict.score is None] == []
    assert sum("failed" in verdict.reason for verdict in verdicts) > 0  # the last breaks its judge
