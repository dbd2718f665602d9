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
        verdict = MathAnswer(answer_in="answer_tag")(f"<answer>{text.strip()}</answer>", text.strip())
        assert verdict.score in (1.0, None), verdict


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
    is_same = cut == 0 and more in ("\\sim", "~")  # \approx 6.5 is paid
    is_same |= answer.endswith(f"= {more} 0")  # a multiple of 0
    assert verdict.score != 1 or is_same, (gold, answer)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 360), st.integers(1, 360))
def test_degrees_are_the_same_multiple_of_pi_and_no_other(degrees, other):
    turn = Fraction(other, 180)
    arc = f"\\frac{{{turn.numerator}\\pi}}{{{turn.denominator}}}"
    pairs = [(arc, f"{degrees}^\\circ"), (f"{degrees}^\\circ", arc)]
    paid = [MathAnswer(workers=1)(f"\\boxed{{{answer}}}", gold).score for gold, answer in pairs]
    assert paid == [degrees == other] * 2 or turn.denominator == 1


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 23), st.sampled_from(["p.m.", "a.m."]))
def test_a_time_of_day_is_itself_only(hour, minute, other, half):
    at = f"{other % 12 or 12}:{minute:02d} {half}"
    verdict = same(read(f"{hour}:{minute:02d}").form, read(at).form, undecided)
    is_same = hour == other % 12 + 12 * (half == "p.m.")
    assert verdict in ((True, False) if is_same else (False,))


@given(st.integers(2, 50), st.integers(-60, 60), st.integers(2, 50), st.integers(-60, 60), st.sampled_from("kmn"))
def test_a_family_is_the_congruence_of_its_numbers(modulus, residue, by, more, letter):
    gold, answer = read(f"x \\equiv {residue} \\pmod{{{modulus}}}").form, read(f"x = {by}{letter}{more:+d}").form
    assert same(gold, answer, undecided) is (modulus == by and (residue - more) % modulus == 0)


UNITS = ["J", "N", "V", "kg", "km/h", "m/s", "m/s^2", "W/m^2"]


@given(st.integers(1, 99), st.sampled_from(UNITS), st.integers(1, 99), st.sampled_from(UNITS))
def test_a_quantity_is_neither_another_number_nor_of_another_unit(number, unit, other, with_unit):
    gold, answer = read(f"{number} \\text{{ {unit}}}").form, read(f"{other} \\text{{ {with_unit}}}").form
    assert same(gold, answer, undecided) is ((number, unit) == (other, with_unit))
    assert same(Number(Fraction(number)), answer, undecided) is (number == other)
