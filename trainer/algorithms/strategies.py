"""The strategies of a run, built and tried together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.advantages import grpo
from evenkeel.trainer.algorithms.contract import (
    ADVANTAGE,
    COEFFICIENT,
    PROMPT_SAMPLER,
    REVISION_COLUMNS,
    TOKEN_WEIGHT,
    UPDATE_SCHEDULE,
    UpdateSchedule,
)
from evenkeel.trainer.algorithms.mixtures import find_estimator
from evenkeel.trainer.algorithms.registry import Strategy, built_in, find_strategy
from evenkeel.trainer.algorithms.results import max_rounds
from evenkeel.trainer.algorithms.revisions import RevisionOptions
from evenkeel.trainer.algorithms.teachers import TeacherOptions
from evenkeel.trainer.algorithms.trial import tried, tried_sampler, tried_schedule

KeepGroups = Literal["step", "forward", "off"]
TAUGHT = {"teacher_logps": {"template"}, "teacher_contrast": {"sibling_template", "wrong_siblings"}}
"""Signal of a teacher → the options of `TeacherOptions` that it depends on."""
_RANKS: tuple[KeepGroups, ...] = ("off", "step", "forward")


@dataclass(frozen=True)
class Strategies:
    """The strategies of a run, and the schedule that the update schedule returned.

    Attributes:
        advantage: ``None`` = TRL's own advantages stay.
        token_weight: ``None`` = every token weighs 1.
        coefficient: ``None`` = the configured loss as TRL computes it.
        keep_groups: a group stays in one optimizer ``step``, in one ``forward`` pass, or neither (``off``).
        revision: how wrong answers are generated again; ``None`` = they are not.
        prompt_sampler: ``None`` = TRL's own sampler chooses the prompts.
        teacher: prompts of the passes for `TAUGHT`; ``None`` = no strategy names one of these signals.
    """

    advantage: Strategy | None
    token_weight: Strategy | None
    coefficient: Strategy | None
    update_schedule: Strategy
    schedule: UpdateSchedule
    keep_groups: KeepGroups
    revision: RevisionOptions | None = None
    prompt_sampler: Strategy | None = None
    teacher: TeacherOptions | None = None

    @property
    def all(self) -> list[Strategy]:
        """All strategies that are not ``None``."""
        return [part for part in self._by_kind.values() if part is not None]

    @property
    def _by_kind(self) -> dict[str, Strategy | None]:
        return {
            ADVANTAGE: self.advantage,
            TOKEN_WEIGHT: self.token_weight,
            COEFFICIENT: self.coefficient,
            UPDATE_SCHEDULE: self.update_schedule,
            PROMPT_SAMPLER: self.prompt_sampler,
        }

    @property
    def are_trls_own(self) -> bool:
        """Whether TRL alone would train the same, so that its evaluation loss is of use."""
        replaced = (self.token_weight, self.coefficient)
        own = self.advantage is None or self.advantage.function is grpo
        return own and all(part is None for part in replaced) and self.schedule.num_passes == 1

    def ask_for(self, signal: str, kind: str | None = None) -> bool:
        """Whether a strategy (of ``kind``) names ``signal``."""
        return any(signal in part.signals for part in self.all if kind in (None, part.kind))

    @property
    def taught(self) -> list[str]:
        """The signals of a teacher that strategies name."""
        return [signal for signal in TAUGHT if self.ask_for(signal)]

    def read(self, rows: Any) -> None:
        """Show the training ``rows`` to a prompt sampler that reads them; a `PartError` if it needs others."""
        sampler: Any = self.prompt_sampler and self.prompt_sampler.function
        if hasattr(sampler, "read"):
            sampler.read(rows)

    @property
    def names(self) -> dict[str, str | None]:
        """Kind → name of the strategy, for summaries."""
        return {kind: part.name if part else None for kind, part in self._by_kind.items()}


def build_strategies(
    advantage: Any = "grpo",
    token_weight: Any = "uniform",
    update_schedule: Any = "single_pass",
    coefficient: Any = None,
    keep_groups: Any = None,
    revision: Any = None,
    prompt_sampler: Any = "uniform",
    teacher: Any = None,
) -> Strategies:
    """The strategies that the specifications (`PartSpec`) name; ``keep_groups`` ``None`` = what their traits ask for.

    Raises:
        PartError: one cannot be found, built or used; ``keep_groups`` is less than one of them needs; ``revision`` or
            ``teacher`` is missing, or is given though nothing asks for it.
    """
    estimator = None if advantage is None else tried(find_estimator(advantage))
    chosen = find_strategy(TOKEN_WEIGHT, token_weight)
    weight = None if chosen.function is built_in(TOKEN_WEIGHT)["uniform"] else tried(chosen)
    factor = None if coefficient is None else tried(find_strategy(COEFFICIENT, coefficient))
    schedule = find_strategy(UPDATE_SCHEDULE, update_schedule)
    parts = [part for part in (estimator, weight, factor) if part is not None]
    return Strategies(
        advantage=estimator,
        token_weight=weight,
        coefficient=factor,
        update_schedule=schedule,
        schedule=tried_schedule(schedule),
        keep_groups=_kept([*parts, schedule], keep_groups),
        revision=_revised(estimator, revision),
        prompt_sampler=_sampler(prompt_sampler, estimator),
        teacher=_teacher(parts, teacher),
    )


def _teacher(parts: list[Strategy], asked: Mapping[str, Any] | TeacherOptions | None) -> TeacherOptions | None:
    taught = {signal for signal in TAUGHT if any(signal in part.signals for part in parts)}
    options = TeacherOptions.model_validate(asked or {})
    unused = {name for signal, names in TAUGHT.items() if signal not in taught for name in names}
    if asked is not None and (not taught or unused & options.model_fields_set):
        what = f"teacher ({', '.join(sorted(options.model_fields_set))}) is given, but no strategy asks for all of it."
        instead = "Leave it out, or write token_weight: rlsd or rlcsd, or advantage: sdpo."
        raise PartError(f"{what} {instead}", code="unused-teacher")
    return options if taught else None


def _sampler(asked: Any, estimator: Strategy | None) -> Strategy | None:
    found = find_strategy(PROMPT_SAMPLER, asked)
    if type(found.function) is built_in(PROMPT_SAMPLER)["uniform"]:
        return None
    if max_rounds(tried_sampler(found)) > 1 and estimator is not None and estimator.traits.trains_dead_groups:
        what = f"prompt_sampler {found.name!r} throws away groups that advantage {estimator.name!r} trains."
        raise PartError(f"{what} Leave one of them out.", code="sampler-without-baseline")
    return found


def _revised(
    estimator: Strategy | None, revision: Mapping[str, Any] | RevisionOptions | None
) -> RevisionOptions | None:
    wanted = estimator is not None and not REVISION_COLUMNS.keys().isdisjoint(estimator.columns)
    name = "null" if estimator is None else estimator.name
    if wanted and revision is None:
        what = f"advantage {name!r} needs revisions. Write algorithm: {{revision: {{references: 3}}}}."
        raise PartError(what, code="missing-revision")
    if revision is not None and not wanted:
        what = f"revision is given, but advantage {name!r} uses none. Leave it out, or write advantage: ibpo."
        raise PartError(what, code="unused-revision")
    return None if revision is None else RevisionOptions.model_validate(revision)


def _kept(parts: list[Strategy], asked: Any) -> KeepGroups:
    if asked is not None and asked not in _RANKS:
        raise PartError(f"keep_groups = {asked!r} is not one of {', '.join(_RANKS)}.", code="unknown-word")
    needs: list[KeepGroups] = [part.traits.needs_whole_groups or "off" for part in parts]
    needed = max(needs, key=_RANKS.index)
    if asked not in (None, "forward") and needed == "forward":
        what = f"keep_groups = {asked!r}, but a strategy computes over whole groups in each forward pass."
        raise PartError(f"{what} Leave keep_groups out.", code="group-cut-in-forward")
    return needed if asked is None else asked
