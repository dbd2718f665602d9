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


def test_a_compact_question_is_of_the_same_problem() -> None:
    sentences, compact = (generate_countdown(20, **SETTINGS, seed=0, style=style) for style in ("sentence", "compact"))
    assert [problem.reference for problem in compact] == [problem.reference for problem in sentences]
    numbers, target = compact[0].numbers, compact[0].target
    assert compact[0].question == f"{numbers[0]} {numbers[1]} {numbers[2]} = {target}"
