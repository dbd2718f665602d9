"""Are all references of a run's rows usable? Asked without a model."""

import time
from collections.abc import Sequence

from rewards.references import tried_references
from trainer.run.experiment import Experiment


def check_dataset(path: str, overrides: Sequence[str], most_listed: int) -> int:
    """Print what each verifier makes of each part's references, and says of them; the number of unusable ones."""
    experiment = Experiment.of_file(path, overrides)
    data, wanted = experiment.config.data, experiment.config.reward_tasks
    verifiers = experiment.verifiers
    held_out = {f"test.{name}": [source] for name, source in data.test_sources.items()}
    count = 0
    for part, sources in {"train": [*data.train_sources.values()], **held_out}.items():
        rows = experiment.loaded(sources, system_prompt=None)
        tasks = rows["task"] if "task" in rows.column_names else [None] * len(rows)
        for label, verifier in verifiers.items():
            mine = [row for row, task in enumerate(tasks) if wanted[label] in (None, task)]
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
