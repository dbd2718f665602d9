"""What holds for every text: reading never raises, a numeric gold is earned by its number only."""

import json
import re
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.math_answer import MathAnswer
from evenkeel.rewards.verifiers.math_answer.comparison import same
from evenkeel.rewards.verifiers.math_answer.forms import Number
from evenkeel.rewards.verifiers.math_answer.notation import balanced, normalise_latex
from evenkeel.rewards.verifiers.math_answer.quantities import exact_number
from evenkeel.rewards.verifiers.math_answer.reading import read
from evenkeel.rewards.verifiers.math_answer.verifier import too_long_or_deep

FRAGMENTS = st.sampled_from(
    r"""\frac \sqrt { } ( ) [ ] \{ \} \left \right , ; = < > \le \pm \cup \infty \text{ \text{cm} \text{or} ^ _ ^\circ %
    $ \$ \boxed \begin{pmatrix} \end{pmatrix} \\ & x i \pi \cdot + - / * ! . : and or e5 5 6 10 1,000 0.5 \sin \log |
    \in ~ ' √ ½ −""".split()  # noqa: SIM905 — as a list it would be sixty lines
)
LATEX = st.lists(FRAGMENTS, max_size=25).map("".join) | st.text(max_size=60)
NUMBERS = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=1000)


def undecided(gold, answer):
    return None


@given(LATEX, LATEX)
def test_reading_and_comparing_never_raise(gold, answer):
    assert same(read(gold).form, read(answer).form, undecided) in (True, False, None)


@given(LATEX)
def test_normalise_latex_is_its_own_spelling_where_it_is_a_number(text):
    spelled = normalise_latex(text)
    if exact_number(spelled) is not None:
        assert exact_number(normalise_latex(spelled)) == exact_number(spelled)


@given(LATEX)
def test_every_readable_text_is_the_same_as_itself(text):
    if not too_long_or_deep(text, "") and text.strip() and balanced(normalise_latex(text)) and normalise_latex(text):
        assert (
            MathAnswer(answer_in="answer_tag")._plain_verdict(f"<answer>{text.strip()}</answer>", text.strip())
            is not None
        )


@given(NUMBERS, LATEX)
def test_no_number_is_earned_but_by_itself(number, answer):
    gold = Number(number)
    given_form = read(answer).form
    if same(gold, given_form, undecided) is True:
        value = given_form.value if hasattr(given_form, "value") else None
        while hasattr(value, "value"):
            value = value.value
        assert value in (number, number * 100)  # 50 % is 1/2


@given(NUMBERS, NUMBERS)
def test_a_numeric_gold_takes_every_spelling_of_its_value_and_no_other(number, other):
    spellings = [
        f"\\frac{{{number.numerator}}}{{{number.denominator}}}",
        f"{number.numerator}/{number.denominator}",
        f"\\dfrac{{{number.numerator * 3}}}{{{number.denominator * 3}}}",
        f"x = {number.numerator}/{number.denominator}",
    ]
    verdicts = MathAnswer().judge_all([f"\\boxed{{{spelling}}}" for spelling in spellings], [spellings[0]] * 4)
    assert [verdict.score for verdict in verdicts] == [1] * 4
    wrong = MathAnswer()(f"\\boxed{{{other}}}", spellings[0])
    assert wrong.score == float(other == number)


@given(st.integers(-(10**12), 10**12), st.integers(0, 6))
def test_decimals_are_exact(digits, places):
    text = f"{abs(digits):0{places + 1}d}"
    written = ("-" if digits < 0 else "") + (f"{text[:-places]}.{text[-places:]}" if places else text)
    assert exact_number(written) == Fraction(digits, 10**places)


LABELLED = json.loads((Path(__file__).parent / "labelled_pairs.json").read_text(encoding="utf-8"))
GOLDS = sorted({pair["gold"] for pair in LABELLED if isinstance(pair["gold"], str) and len(pair["gold"]) < 60})
SAY_MORE = r"""\text{foo} \text{not} \foo \Gamma \hat k Q ' _2 ^* \ne \neg
    \sim ? # @ & \not \dagger \nabla \partial № ① ¬ ℏ \quad\frac{1}{2} \ldots \to \text{mol} \infty""".split()  # noqa: SIM905 — as FRAGMENTS


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(GOLDS), st.sampled_from(SAY_MORE), st.integers(0, 60))
def test_a_gold_with_anything_more_in_it_is_not_paid(gold, more, place):
    """Wherever a word, a command, a letter, a prime or an index is put into the right answer: it is another one."""
    pieces = re.findall(r"\\[a-zA-Z]+(?: ?\{[a-z]*\})?|\\.|.", gold)
    cut = place % (len(pieces) + 1)
    answer = "".join([*pieces[:cut], f" {more} " if more[0] == "\\" else more, *pieces[cut:]])
    verdict = MathAnswer(workers=1, answer_in="answer_tag")(f"<answer>{answer}</answer>", gold)
    assert verdict.score != 1, (gold, answer)
