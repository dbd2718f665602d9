"""Brief demonstrations of countdown: right where careful, of one length or of several, in words the policy knows."""

import random
from collections.abc import Callable

import pytest

from evenkeel.rewards import build_verifier
from evenkeel.rewards.generators.countdown import CountdownProblem, generate_countdown
from scripts.tiny_policy.architecture import tiny_model, tiny_tokenizer
from scripts.tiny_policy.brief_countdown_demonstrations import one_line, several_lines
from scripts.tiny_policy.make import main, prompt_text
from scripts.tiny_policy.tasks import TASKS

Demonstration = Callable[..., str | None]
BOTH = pytest.mark.parametrize("demonstration", [one_line, several_lines])
PROBLEMS = generate_countdown(200, num_numbers=3, max_number=20, max_target=60, seed=3, style="compact")


def accuracy(demonstration: Demonstration, *, careful: bool) -> float:
    rng, verifier = random.Random(0), build_verifier("countdown")
    shown = [(problem, demonstration(problem, rng, careful=careful)) for problem in PROBLEMS]
    scores = [verifier(text, problem.reference).score for problem, text in shown if text is not None]
    return sum(score == verifier.full_score for score in scores) / len(scores)


@BOTH
def test_careful_ones_are_right_and_hasty_ones_seldom(demonstration: Demonstration) -> None:
    assert accuracy(demonstration, careful=True) == 1
    assert 0.2 < accuracy(demonstration, careful=False) < 0.6


def lengths(demonstration: Demonstration) -> set[int]:
    rng = random.Random(0)
    texts = [demonstration(problem, rng, careful=careful) for problem in PROBLEMS for careful in (True, False)]
    return {len(text.split()) + 1 for text in texts if text is not None}  # and the end of the turn


def test_one_line_has_one_length_and_several_lines_have_many() -> None:
    assert lengths(one_line) == {17}  # 4 tags, 5 of thought, 7 of answer, 1 end
    assert lengths(several_lines) == {17, 18, 23, 24, 29, 30, 35, 36}  # 6 more a failure, 1 more where judged


def test_failures_do_not_solve_and_the_last_line_does() -> None:
    problem = CountdownProblem((3, 5, 7), 36, "compact")
    for seed in range(20):
        text = several_lines(problem, random.Random(seed), careful=True)
        assert text is not None
        *failures, last = text.removeprefix("<think> ").partition(" </think>")[0].replace("no ", "no\n").split("\n")
        assert all(failure.endswith("no") for failure in failures)
        assert last == "36 / 3 = 12 yes"  # 5 + 7; 36 - 5 = 31, 36 - 7 = 29, 36 + 3 = 39 … are made by no two
        assert text.endswith("<answer> ( 5 + 7 ) * 3 </answer>")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["countdown_one_line", "countdown_several_lines"])
def test_the_policy_knows_every_word_and_its_warm_up_no_held_out_problem(name: str) -> None:
    task = TASKS[name]()
    tokenizer, rng = tiny_tokenizer(task.vocabulary, task.tokens), random.Random(0)
    held_out = {puzzle.question for puzzle in task.held_out["countdown"]}
    assert not held_out & {puzzle.question for puzzle in [*task.pool, *task.warm_up]}
    for puzzle in [*task.pool, *task.warm_up]:
        text = puzzle.demonstrate(rng, rng.random() < 0.5) or ""
        assert tokenizer.unk_token_id not in tokenizer(prompt_text(tokenizer, puzzle.question) + text).input_ids


@pytest.mark.parametrize(("hidden_size", "parameters"), [(128, 409_216), (256, 1_604_736), (512, 6_355_072)])
def test_wider_policies_have_four_and_sixteen_times_the_parameters(hidden_size: int, parameters: int) -> None:
    task = TASKS["countdown_one_line"]()
    model = tiny_model(tiny_tokenizer(task.vocabulary, task.tokens), task.layers, hidden_size)
    assert model.num_parameters() == parameters
    with pytest.raises(SystemExit, match="write 128, 256 or 512"):
        main(["countdown", "--output", "nowhere", "--hidden-size", str(hidden_size + 1)])
