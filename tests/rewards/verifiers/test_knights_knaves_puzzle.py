"""The statement language: reading, truth, solutions, and when two puzzles are the same."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.generators.knights_knaves.canonical import canonical_statements
from evenkeel.rewards.verifiers.knights_knaves.puzzle import checked_statements, evaluate, parse_statements, solutions
from tests.paths import SHARED_DATA

PUBLISHED = SHARED_DATA / "kk_train.parquet"


def claims(num_people: int):
    leaves = st.tuples(st.sampled_from(["telling-truth", "lying"]), st.integers(0, num_people - 1))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.just("not"), inner),
            st.tuples(st.sampled_from(["and", "or", "->", "<=>"]), inner, inner),
            st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
        ),
        max_leaves=6,
    )


def puzzles(fewest=1, most=4):
    return st.integers(fewest, most).flatmap(lambda n: st.tuples(*[claims(n)] * n))


def as_python(statement) -> str:
    """The claim as a Python expression over k[0], k[1], …: an evaluator that shares no line with ours."""
    word, *rest = statement
    if word == "telling-truth":
        return f"k[{rest[0]}]"
    if word == "lying":
        return f"(not k[{rest[0]}])"
    parts = [as_python(part) for part in rest]
    return {
        "not": f"(not {parts[0]})",
        "and": "(" + " and ".join(parts) + ")",
        "or": "(" + " or ".join(parts) + ")",
        "->": f"({parts[-1]} if {parts[0]} else True)",
        "<=>": f"({parts[0]} == {parts[-1]})",
    }[word]


def brute_force(statements):
    test = eval(
        "lambda k: " + " and ".join(f"({as_python(statement)} == k[{p}])" for p, statement in enumerate(statements))
    )
    return {roles for roles in itertools.product((False, True), repeat=len(statements)) if test(roles)}


@given(puzzles())
def test_solutions_are_those_of_an_independent_solver(statements):
    found = solutions(statements)
    assert len(found) == len(set(found))
    assert set(found) == brute_force(statements)
    for roles in itertools.product((False, True), repeat=len(statements)):
        assert all(map(lambda s, r: evaluate(s, roles) == r, statements, roles)) == (roles in found)


@given(puzzles())
def test_text_round_trip(statements):
    assert parse_statements(str(statements)) == statements
    assert checked_statements(_as_lists(statements)) == statements


def _as_lists(value):
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value


def test_every_fifth_published_puzzle_has_its_one_solution():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED.name} is not in shared/data beside the repository")
    table = pytest.importorskip("pyarrow.parquet").read_table(PUBLISHED, columns=["statements", "solution"])
    for published in table.to_pylist()[::5]:
        statements = parse_statements(published["statements"])
        assert str(statements) == published["statements"]
        assert solutions(statements) == [tuple(published["solution"])]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "(" * 5_000,
        "7" * 20_001,
        str((("lying", 0),) * 17),
        "(('lying', 1),)",
        "(('xor', ('lying', 0), ('lying', 0)),)",
        "(('and', ('lying', 0)),)",
        "(" + "('not', " * 17 + "('lying', 0)" + ")" * 17 + ",)",
    ],
    ids=lambda text: text[:30],
)
def test_unreadable_statements_are_refused(text):
    with pytest.raises(ValueError, match=r"statements|claim"):
        parse_statements(text)


def renumbered(statement, number, turn):
    """``statement`` about other people; what and, or, iff join in another order where ``turn``."""
    if statement[0] in ("telling-truth", "lying"):
        return (statement[0], number[statement[1]])
    arguments = [renumbered(argument, number, turn) for argument in statement[1:]]
    return (statement[0], *(arguments[::-1] if turn and statement[0] in ("and", "or", "<=>") else arguments))


def reordered(statements, number, turn=False):
    placed = {number[person]: renumbered(statement, number, turn) for person, statement in enumerate(statements)}
    return tuple(placed[place] for place in range(len(placed)))


@given(puzzles(1, 5), st.randoms(use_true_random=False), st.booleans())
def test_canonical_statements_ignore_the_order_of_people_and_of_what_is_joined(statements, rng, turn):
    number = list(range(len(statements)))
    rng.shuffle(number)
    assert canonical_statements(reordered(statements, number, turn)) == canonical_statements(statements)


@given(puzzles(3, 3), puzzles(3, 3), st.permutations(range(3)), st.integers(0, 2))
def test_canonical_statements_are_equal_only_for_the_same_puzzle(one, other, number, changed):
    nearly = list(reordered(one, number))
    nearly[changed] = other[changed]
    for candidate in (other, tuple(nearly)):
        is_same = any(
            sorted_joins(reordered(candidate, order)) == sorted_joins(one) for order in itertools.permutations(range(3))
        )
        assert (canonical_statements(candidate) == canonical_statements(one)) == is_same


def sorted_joins(value):
    if isinstance(value, tuple) and value and value[0] in ("and", "or", "<=>"):
        return (value[0], *sorted(sorted_joins(part) for part in value[1:]))
    return tuple(sorted_joins(part) for part in value) if isinstance(value, tuple) else value
