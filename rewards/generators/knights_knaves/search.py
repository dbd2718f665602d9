"""How a careful solver finds the solution: suppose roles person by person, check each claim once it is decided."""

from collections.abc import Sequence
from dataclasses import dataclass

from evenkeel.rewards.verifiers.knights_knaves.puzzle import Statement, evaluate, people_in


@dataclass(frozen=True)
class Trial:
    """One set of assumptions and the claims it decides.

    Attributes:
        assumed: the roles supposed for the first people, True = knight.
        checks: (speaker, truth of the claim) in the order of checking; it ends at the first contradiction.
        is_consistent: no checked claim contradicts its speaker's role.
    """

    assumed: tuple[bool, ...]
    checks: tuple[tuple[int, bool], ...]
    is_consistent: bool


def search(statements: Sequence[Statement]) -> list[Trial]:
    """The trials of a depth-first search, knight before knave, up to the first solution.

    A claim is checked as soon as its speaker and all whom it mentions have a supposed role. Supposing a person decides
    nothing at times: such a step is not a trial. The last trial is the solution, if there is one.
    """
    decided_by: list[list[int]] = [[] for _ in statements]
    for speaker, statement in enumerate(statements):
        decided_by[max(people_in(statement) | {speaker})].append(speaker)
    trials: list[Trial] = []
    _extend((), statements, decided_by, trials)
    return trials


def _extend(
    assumed: tuple[bool, ...], statements: Sequence[Statement], decided_by: list[list[int]], trials: list[Trial]
) -> bool:
    if len(assumed) == len(statements):
        return True
    for is_knight in (True, False):
        trial = _trial((*assumed, is_knight), statements, decided_by[len(assumed)])
        if trial.checks:
            trials.append(trial)
        if trial.is_consistent and _extend(trial.assumed, statements, decided_by, trials):
            return True
    return False


def _trial(assumed: tuple[bool, ...], statements: Sequence[Statement], speakers: Sequence[int]) -> Trial:
    checks = []
    for speaker in speakers:
        is_true = evaluate(statements[speaker], assumed)
        checks.append((speaker, is_true))
        if is_true != assumed[speaker]:
            return Trial(assumed, tuple(checks), is_consistent=False)
    return Trial(assumed, tuple(checks), is_consistent=True)
