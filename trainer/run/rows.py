"""The rows of a run: to train on and held out, each reference tried on every verifier that will judge it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rewards.verifier import Verifier
from trainer.run.config import RunConfig, Source
from trainer.run.data import load_mixture
from trainer.run.rewards import Rewards


def load_data(config: RunConfig, verifiers: Mapping[str, Verifier], rewards: Rewards, base_dir: Path) -> dict[str, Any]:
    """The rows to train on as one dataset, ``train``, without up to ``data.max_unusable``; and the held-out sets.

    Each held-out set is a dataset of its own, ``test.<name>``, or ``test`` alone.

    Raises:
        DataError: rows that cannot be loaded.
        UnusableReferenceError: rows that their verifiers cannot judge.
    """
    sets = config.data.test_sources
    held_out = {"test" if [*sets] == ["test"] else f"test.{name}": [source] for name, source in sets.items()}
    rows = {}
    for part, sources in {"train": [*config.data.train_sources.values()], **held_out}.items():
        if sources:
            most = config.data.max_unusable if part == "train" else 0
            rows[part] = _usable(config, verifiers, rewards, base_dir, sources, f"data.{part}", most)
    return rows


def load_held_out(
    config: RunConfig, verifiers: Mapping[str, Verifier], rewards: Rewards, base_dir: Path
) -> dict[str, Any]:
    """The held-out sets by name, without the rows that no verifier can use: at most ``data.max_unusable`` in each.

    Raises:
        DataError: rows that cannot be loaded.
        UnusableReferenceError: rows that their verifiers cannot judge.
    """
    most = config.data.max_unusable
    return {
        name: _usable(config, verifiers, rewards, base_dir, [source], f"data.test, {name}", most)
        for name, source in config.data.test_sources.items()
    }


def held_out_sets(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Of what `load_data` returns, the held-out sets by their names in the configuration."""
    return {part.removeprefix("test."): dataset for part, dataset in rows.items() if part != "train"}


def _usable(
    config: RunConfig,
    verifiers: Mapping[str, Verifier],
    rewards: Rewards,
    base_dir: Path,
    sources: Iterable[Source],
    label: str,
    max_unusable: int,
) -> Any:
    prompt = config.data.system_prompt
    rows = load_mixture(sources, generators=rewards.generators, system_prompt=prompt, base_dir=base_dir)
    tasks = rows["task"] if "task" in rows.column_names else None
    usable = rewards.usable_rows(
        verifiers, config.reward_tasks, rows["reference"], tasks, label, max_unusable=max_unusable
    )
    return rows if len(usable) == len(rows) else rows.select(usable)
