import pytest

from evenkeel.rewards.generators.countdown import generate_countdown
from evenkeel.rewards.verifiers.countdown import solution

SETTINGS = {"num_numbers": 3, "max_number": 12, "max_target": 40}


def test_distinct_and_solvable_with_every_number() -> None:
    problems = generate_countdown(300, **SETTINGS, seed=0)
    assert len({(tuple(sorted(problem.numbers)), problem.target) for problem in problems}) == 300
    for problem in problems:
        assert all(1 <= number <= 12 for number in problem.numbers)
        assert 1 <= problem.target <= 40
        assert solution(problem.numbers, problem.target, use_all=True) is not None


def test_a_smaller_count_is_the_beginning_of_a_larger_one() -> None:
    assert generate_countdown(50, **SETTINGS, seed=3) == generate_countdown(200, **SETTINGS, seed=3)[:50]
    assert generate_countdown(50, **SETTINGS, seed=3) != generate_countdown(50, **SETTINGS, seed=4)


def test_more_problems_than_there_are() -> None:
    with pytest.raises(ValueError, match="only 1 distinct problems"):
        generate_countdown(50, num_numbers=2, max_number=1, max_target=2, seed=0)


@pytest.mark.parametrize("wrong", [{"num_numbers": 1}, {"max_number": 0}, {"max_target": 0}])
def test_settings_without_problems(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Write at least 2 for num_numbers"):
        generate_countdown(5, **{**SETTINGS, **wrong}, seed=0)


def test_a_compact_question_is_of_the_same_problem() -> None:
    sentences, compact = (generate_countdown(20, **SETTINGS, seed=0, style=style) for style in ("sentence", "compact"))
    assert [problem.reference for problem in compact] == [problem.reference for problem in sentences]
    numbers, target = compact[0].numbers, compact[0].target
    assert compact[0].question == f"{numbers[0]} {numbers[1]} {numbers[2]} = {target}"
    with pytest.raises(ValueError, match="Write sentence or compact"):
        generate_countdown(1, **SETTINGS, seed=0, style="brief")  # type: ignore[arg-type]
