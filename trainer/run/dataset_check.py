"""Are all references of a run's rows usable? Asked without a model."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewards.verifier import Verifier
from trainer.run.config import load_config
from trainer.run.data import load_mixture
from trainer.run.rewards import Rewards


def check_dataset(
    path: str,
    overrides: Sequence[str],
    rewards: Rewards,
    tried_references: Callable[[Verifier, Sequence[Any], str], tuple[Mapping[int, str], Mapping[int, str]]],
    most_listed: int,
) -> int:
    """Print what each verifier makes of each part's references, and says of them; the number of unusable ones."""
    config = load_config(path, overrides)
    verifiers = {reward.label: (rewards.build_verifier(reward.verifier), reward.task) for reward in config.rewards}
    held_out = {f"test.{name}": [source] for name, source in config.data.test_sources.items()}
    base_dir = Path(path).resolve().parent
    count = 0
    for part, sources in {"train": [*config.data.train_sources.values()], **held_out}.items():
        rows = load_mixture(sources, generators=rewards.generators, system_prompt=None, base_dir=base_dir)
        tasks = rows["task"] if "task" in rows.column_names else [None] * len(rows)
        for label, (verifier, wanted) in verifiers.items():
            mine = [row for row, task in enumerate(tasks) if wanted in (None, task)]
            if not mine:
                continue
            references = rows.select(mine)["reference"][:]
            started = time.perf_counter()
            problems, remarks = tried_references(verifier, references, f"data.{part}, {label}")
            seconds = time.perf_counter() - started
            gold = sum(verifier.gold_completion(reference) is not None for reference in references)
            print(f"data.{part}, {label}: {len(mine)} rows, {gold} with a gold answer, {seconds:.1f} s", end=": ")
            print(f"{len(problems)} unusable" if problems else "all usable")
            for place, problem in list(problems.items())[:most_listed]:
                print(f"  row {mine[place]}: {problem}")
            if remarks:
                print(f"  usable, but to be looked at: {len(remarks)} rows")
            for place, remark in list(remarks.items())[:most_listed]:
                print(f"  row {mine[place]}: {remark}")
            count += len(problems)
    return count
