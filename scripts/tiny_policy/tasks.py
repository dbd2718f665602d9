"""Tasks with worked answers, careful and hasty: what ``scripts.tiny_policy.make`` warms a tiny policy up on.

The generators' settings here are those of the run files that train the policy: held-out rows and the rows for
reinforcement learning must not occur in the warm-up.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

from evenkeel.rewards.environments.shipped import ENVIRONMENTS
from evenkeel.rewards.generators import rows
from evenkeel.rewards.generators.arithmetic import generate_arithmetic
from evenkeel.rewards.generators.countdown import CountdownProblem, generate_countdown
from evenkeel.rewards.generators.knights_knaves.generator import generate_puzzles
from evenkeel.rewards.generators.small_programs import generate_programs
from evenkeel.rewards.parts import build_verifier
from evenkeel.rewards.verifier import Verifier
from evenkeel.rewards.verifiers.knights_knaves.language import NAMES
from evenkeel.rewards.verifiers.knights_knaves.puzzle import Puzzle as KnightsKnavesPuzzle
from scripts.tiny_policy import games_demonstrations as games
from scripts.tiny_policy.arithmetic_demonstrations import demonstration as worked_arithmetic
from scripts.tiny_policy.brief_countdown_demonstrations import one_line, revised_line, several_lines
from scripts.tiny_policy.brief_knights_knaves_demonstrations import noted_claims
from scripts.tiny_policy.countdown_demonstrations import demonstration as worked_countdown
from scripts.tiny_policy.games_demonstrations import Messages
from scripts.tiny_policy.knights_knaves_demonstrations import supposed_roles
from scripts.tiny_policy.small_programs_demonstrations import demonstration as worked_program

HELD_OUT = 256  # puzzles of each kind to measure on

Tokens = Literal["words", "exact"]
Demonstration = Callable[[random.Random, bool], str | Messages | None]


@dataclass(frozen=True)
class Puzzle:
    """A question, what its verifier judges against, and how it is demonstrated (``None`` where it cannot be).

    Attributes:
        environment: makes that in which the policy acts, ``None`` where there is none; its ``get_reward``, where it
            has one, judges instead.
    """

    question: str
    reference: Any
    demonstrate: Demonstration
    verifier: Verifier
    environment: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Task:
    """Puzzles of one kind or several. Of each kind the first are to measure on, the next for reinforcement learning,
    the rest for the warm-up; the three share none.

    Attributes:
        puzzles: by kind.
        pool_size: of each kind, for reinforcement learning.
        vocabulary: texts whose words the tokenizer must know.
        writes: what a completion looks like, for the model card.
        tokens: ``words``: blanks are dropped, and decoding puts one between any two words; ``exact``: a token begins
            with the blank before it, and decoding gives back every blank and line break.
        layers: of the model.
        revisions: more puzzles for the warm-up: revision prompts, and their completions.
    """

    puzzles: Mapping[str, Sequence[Puzzle]]
    pool_size: int
    vocabulary: Sequence[str]
    writes: str = "`<think> … </think> <answer> … </answer>`"
    tokens: Tokens = "words"
    layers: int = 4
    revisions: Sequence[Puzzle] = ()

    @property
    def calls_tools(self) -> bool:
        """Whether its puzzles have environments."""
        return any(puzzles[0].environment() is not None for puzzles in self.puzzles.values())

    @property
    def held_out(self) -> Mapping[str, Sequence[Puzzle]]:
        """To measure on, by kind."""
        return {kind: puzzles[:HELD_OUT] for kind, puzzles in self.puzzles.items()}

    @property
    def pool(self) -> list[Puzzle]:
        """For reinforcement learning, of all kinds."""
        return [puzzle for puzzles in self.puzzles.values() for puzzle in puzzles[HELD_OUT : self._end_of_pool]]

    @property
    def warm_up(self) -> list[Puzzle]:
        """The rest, of all kinds, and the revisions."""
        rest = [puzzle for puzzles in self.puzzles.values() for puzzle in puzzles[self._end_of_pool :]]
        return [*rest, *self.revisions]

    @property
    def _end_of_pool(self) -> int:
        return HELD_OUT + self.pool_size


def countdown_task() -> Task:
    """Three numbers up to 12, a target up to 50."""
    problems = generate_countdown(HELD_OUT + 1024 + 1900, num_numbers=3, max_number=12, max_target=50, seed=1)
    puzzles = _puzzles(problems, worked_countdown, "countdown")
    words = [puzzles[0].question, "( ) + - * / = yes no", *(str(number) for number in range(145))]
    return Task({"countdown": puzzles}, 1024, words)


def brief_countdown_task(demonstration: Callable[..., str | None]) -> Task:
    """Three numbers up to 20, a target up to 60, asked and answered in few words."""
    problems = _brief_countdown_problems()
    words = ["( ) + - * / = yes no", *(str(number) for number in range(100))]
    return Task({"countdown": _puzzles(problems, demonstration, "countdown")}, 2304, words, layers=2)


def revised_countdown_task() -> Task:
    """The brief task of one line; a quarter of the warm-up's rows show a wrong answer and a right one to revise by."""
    task, rng = brief_countdown_task(one_line), random.Random(0)
    revised = [revised_line(each, rng) for each in _brief_countdown_problems()[-2000:]]
    revisions = [
        Puzzle(shown, None, partial(_always, right), task.puzzles["countdown"][0].verifier)
        for shown, right in filter(None, revised)
    ]
    return replace(task, vocabulary=[*task.vocabulary, revisions[0].question], revisions=revisions)


def knights_knaves_task() -> Task:
    """Two people out of twelve, in the compact phrasing; every puzzle under eight namings, on one side of each cut."""
    names = NAMES[:12]
    drawn = generate_puzzles(2, HELD_OUT + 384 + 896, seed=1, names=names, style="compact", namings=8)
    puzzles = _knights_knaves(drawn, supposed_roles)
    return Task({"knights_knaves": puzzles}, 384, [*names, *_shown(puzzles)])


def brief_knights_knaves_task(num_people: int, pool: int, warm_up: int, namings: int = 1) -> Task:
    """People out of twelve, asked and answered in few words; a puzzle occurs under so many namings, all on one side."""
    names = NAMES[:12]
    drawn = generate_puzzles(
        num_people, HELD_OUT + pool + warm_up, seed=1, names=names, style="compact", namings=namings
    )
    puzzles = _knights_knaves(drawn, noted_claims)
    return Task({"knights_knaves": puzzles}, pool, [*names, *_shown(puzzles[:500])], layers=2)


def arithmetic_and_programs_task() -> Task:
    """Arithmetic over three numbers up to 15, and functions of three steps with numbers up to 12."""
    questions = generate_arithmetic(
        HELD_OUT + 512 + 3000, num_numbers=3, max_number=15, max_result=60, operations="+-*", seed=1
    )
    functions = generate_programs(HELD_OUT + 512 + 1800, num_steps=3, max_number=12, num_inputs=4, seed=1)
    puzzles = {
        "arithmetic": _puzzles(questions, worked_arithmetic, "math_answer"),
        "small_programs": _puzzles(functions, worked_program, "code_tests"),
    }
    numbers = [f"{number} {{{number}" for number in range(71)]
    shown = [text for several in puzzles.values() for text in _shown(several[:500])]
    return Task(
        puzzles,
        512,
        [*numbers, *shown],
        writes="`<think>…</think>`, then `\\boxed{…}` or a block of Python,",
        tokens="exact",
        layers=3,
    )


def games_task() -> Task:
    """The environments that ship: a number up to 15 in 4 guesses, a corridor of 4 places, Python for arithmetic."""
    questions = generate_arithmetic(
        HELD_OUT + 512 + 3000, num_numbers=3, max_number=15, max_result=60, operations="+-*", seed=1
    )
    puzzles = {
        "guessing": _rounds(rows.guessing, games.guessing, "guessing", largest=games.LARGEST, guesses=games.GUESSES),
        "key_door": _rounds(rows.key_door, games.key_door, "key_door", length=games.LENGTH, moves=games.MOVES),
        "python_tool": _puzzles(questions, games.python_tool, "math_answer", ENVIRONMENTS["python_tool"]),
    }
    numbers = [f"{number} {{{number} {number},={number}" for number in range(71)]
    calls = [
        "<call>guess(number=8)</call>",
        '<call>move(action="',
        'python(code="print(3 + 4 * 5 - 6)")',
        "\\boxed{}",
        "\n",
    ]
    answers = ["higher", "lower", "no guesses left", "no moves left", "the door is open", "with", " with", "without"]
    words = ["done", "left", "right", "take", "open", "place 1 of 4, without the key", "(code)(action)(number)"]
    asked = [puzzle.question for several in puzzles.values() for puzzle in several[:50]]
    return Task(
        puzzles,
        512,
        [*numbers, *calls, *answers, *words, *asked],
        writes="calls such as `<call>guess(number=8)</call>`, and `done` or `\\boxed{…}` at last,",
        tokens="exact",
        layers=2,
    )


TASKS: Mapping[str, Callable[[], Task]] = {
    "countdown": countdown_task,
    "countdown_one_line": partial(brief_countdown_task, one_line),
    "countdown_one_line_revised": revised_countdown_task,
    "countdown_several_lines": partial(brief_countdown_task, several_lines),
    "knights_knaves": knights_knaves_task,
    "knights_knaves_two": partial(brief_knights_knaves_task, 2, 384, 896, namings=8),
    "knights_knaves_three": partial(brief_knights_knaves_task, 3, 1280, 6000),
    "arithmetic_and_programs": arithmetic_and_programs_task,
    "games": games_task,
}


def _brief_countdown_problems() -> list[CountdownProblem]:
    return generate_countdown(
        HELD_OUT + 2304 + 6000, num_numbers=3, max_number=20, max_target=60, seed=1, style="compact"
    )


def _puzzles(
    problems: Iterable[Any],
    demonstration: Callable[..., str | Messages | None],
    verifier: str,
    environment: Callable[[], Any] = lambda: None,
) -> list[Puzzle]:
    judge = build_verifier(verifier)
    return [
        Puzzle(each.question, each.reference, partial(_worked, demonstration, each), judge, environment)
        for each in problems
    ]


def _rounds(
    generator: Callable[..., list[dict[str, Any]]], demonstration: Callable[..., Messages], name: str, **options: int
) -> list[Puzzle]:
    sizes = {"train": 512 + 1000, "test": HELD_OUT, "seed": 1}
    drawn = [row for part in ("test", "train") for row in generator(part=part, **sizes, **options)]
    rounds = [SimpleNamespace(question=row["prompt"], reference=row["reference"]) for row in drawn]
    return _puzzles(rounds, demonstration, "environment", partial(ENVIRONMENTS[name], **options))


def _knights_knaves(drawn: Iterable[KnightsKnavesPuzzle], demonstration: Callable[..., str]) -> list[Puzzle]:
    judge = build_verifier("knights_knaves")
    return [Puzzle(each.quiz, _reference(each), partial(_worked, demonstration, each), judge) for each in drawn]


def _shown(puzzles: Iterable[Puzzle]) -> list[str]:
    rng = random.Random(0)
    return [
        text
        for puzzle in puzzles
        for text in (puzzle.question, puzzle.demonstrate(rng, True), puzzle.demonstrate(rng, False))
        if isinstance(text, str)
    ]


def _worked(
    demonstration: Callable[..., str | Messages | None], problem: Any, rng: random.Random, careful: bool
) -> str | Messages | None:
    return demonstration(problem, rng, careful=careful)


def _always(completion: str, rng: random.Random, careful: bool) -> str:
    return completion


def _reference(puzzle: KnightsKnavesPuzzle) -> dict[str, Any]:
    return {"names": list(puzzle.names), "statements": str(puzzle.statements)}
