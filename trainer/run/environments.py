"""Environments and tools of a run: built, tried on its rows and against its chat template, and handed to TRL."""

from collections.abc import Mapping
from typing import Any

from evenkeel.rewards.environments import RowEnvironment, build_environment, has_reward, trial_problem
from evenkeel.rewards.registry import PartError
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.section import is_by_task, part_name

Environments = Mapping[str | None, type[RowEnvironment]]
"""Task → class of its rows' environments; only ``None`` → one for all rows; empty: none."""
OTHER_TASKS = ""
"""Key of the rows whose task has no environment: they have the run's tools, if there are any."""
_COLUMN = "environment"
"""By this column TRL finds a row's environment."""


def environments_of(config: RunConfig) -> Environments:
    """The environments of a run file.

    Raises:
        PartError: an environment cannot be built, or is for a task that no source has; its own reward is not
            among the run's, or the run's rewards name one that no environment has.
    """
    given = config.environment
    is_asked = any(part_name(reward.verifier) == "environment" for reward in config.rewards)
    if given is None and not config.tools and not is_asked:
        return {}
    parts: dict[str | None, Any] = {None: given}
    if is_by_task(given):
        parts = {OTHER_TASKS: None}
        parts.update(given)
        tasks = {source.task for _, source in config.data.placed_sources if source.task is not None}
        if away := [task for task in given if task not in tasks]:
            there = ", ".join(sorted(tasks)) or "none"
            what = f"environment names the task {away[0]!r}, and no source of data has it (tasks there: {there})."
            raise PartError(what, code="environment-of-no-task")
    found = {task: build_environment(part, config.tools) for task, part in parts.items()}
    for kind in found.values():
        if has_reward(kind) and not is_asked:
            what = f"environment {kind.__name__} has a reward of its own, and no reward of the run asks for it."
            instead = "Write `rewards: [{verifier: environment}]`."
            raise PartError(f"{what} {instead}", code="environment-reward-not-asked")
    if is_asked and not any(map(has_reward, found.values())):
        what = "rewards names the environment, and the run has none with get_reward. Write `environment: …`."
        raise PartError(what, code="environment-without-reward")
    return found


def try_on_rows(environments: Environments, parts: Mapping[str, Any]) -> None:
    """Reset each environment on a few of its rows of each part (name → dataset).

    One that fails or hangs is refused, and no other is tried: they may share what hung.
    """
    for task, kind in environments.items():
        own = {
            label: rows.select([row for row, key in enumerate(_keys(rows, environments)) if key == task]).to_list()
            for label, rows in parts.items()
        }
        if any(own.values()) and (problem := trial_problem(kind, own)):
            raise PartError(problem, code="environment-trial")


def routed(rows: Any, environments: Environments) -> Any:
    """``rows`` with the column by which TRL finds each one's environment, where there are several."""
    if not environments or None in environments:
        return rows
    return rows.add_column(_COLUMN, _keys(rows, environments))


def _keys(rows: Any, environments: Environments) -> list[str | None]:
    if None in environments:
        return [None] * len(rows)
    tasks = rows["task"] if "task" in rows.column_names else [None] * len(rows)
    return [task if task in environments else OTHER_TASKS for task in tasks]
