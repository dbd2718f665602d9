"""Notes for the reader of a report: missing runs, unequal conditions, number of comparisons."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evenkeel.trainer.lab.reports.accuracies import curves
from evenkeel.trainer.lab.reports.comparison import Comparison
from evenkeel.trainer.lab.reports.run_files import RecordedRuns
from evenkeel.trainer.lab.statistics.intervals import mean_estimate


def notes_of(runs: RecordedRuns, scored: RecordedRuns, comparisons: Sequence[Comparison], directory: Path) -> list[str]:
    """Sentences, in the order of a reader's questions: which runs, which data, which tests."""
    main = next(iter(comparisons), None)
    notes = [
        f"Left out, {reason}: {', '.join(cell for cell, why in runs.unfinished.items() if why == reason)}."
        for reason in dict.fromkeys(runs.unfinished.values())
    ]
    if begun := sorted({begun for run in runs.all if (begun := run.raw_config.get("branch_of"))}):
        notes.append(
            f"It begins in checkpoints of others ({', '.join(begun)}): what is said holds given these parents."
        )
    if main is None:
        return [*notes, "No held-out set was evaluated and scored."]
    for found in comparisons:
        if found.left_out:
            notes.append(f"Left out, because no answer on {found.dataset} was scored: {', '.join(found.left_out)}.")
    return [
        *notes,
        *main.not_compared,
        *_files(scored, main, directory),
        *_unequal(scored, main.dataset),
        *_nothing_learned(scored, main.dataset),
        *_tests(runs, sum(found.num_tests for found in comparisons)),
    ]


def _files(runs: RecordedRuns, main: Comparison, directory: Path) -> Sequence[str]:
    """Files that are missing or damaged."""
    found = [run for run in runs.all if run.final_answers(main.dataset) is None]
    broken = [path for run in found if (path := run.final_file(main.dataset))]
    notes = [f"{path.relative_to(directory).as_posix()} cannot be read." for path in broken]
    if found:
        notes.append("Answers by item were not kept everywhere: no interval covers the choice of items.")
    return notes


def _unequal(runs: RecordedRuns, dataset: str) -> Sequence[str]:
    """Conditions that should have been equal in all runs and were not."""
    notes = []
    ends = sorted({max(run.held_out()[dataset]) for run in runs.all})
    if len(ends) > 1:
        notes.append(f"Runs were last evaluated after {', '.join(f'{end:g}' for end in ends)} rollout batches.")
    chosen = [run.manifest.get("choices") or {} for run in runs.all]
    for choice in sorted(set().union(*chosen)):
        without = [run.path.parent.name for run, taken in zip(runs.all, chosen, strict=True) if not taken.get(choice)]
        if 0 < len(without) < len(chosen):
            notes.append(f"Not all runs computed alike: {', '.join(without)} without {choice}.")
    prints = [run.manifest.get("data_fingerprints") or {} for run in runs.all]
    held_out = [{part: value for part, value in found.items() if part != "train"} for found in prints]
    if any(found != held_out[0] for found in held_out):
        notes.append("Runs were evaluated on different held-out rows: the differences cannot be trusted.")
    return notes


def _nothing_learned(runs: RecordedRuns, dataset: str) -> Sequence[str]:
    """A note where no variant's mean accuracy rose from the first evaluation to the last."""
    if not runs.baseline:
        return []
    gains = {}
    for variant, by_seed in runs.by_variant.items():
        points, values = curves(list(by_seed.values()), dataset)
        if len(points) < 2 or points[0] != 0:
            return []
        gains[variant] = mean_estimate(values[:, -1] - values[:, 0])
    if not gains or any((each.low if each.num_seeds > 1 else each.value) > 0 for each in gains.values()):
        return []
    named = ", ".join(f"{variant} {gain.value:+.3f}" for variant, gain in gains.items())
    return [f"Nothing rose above its start on {dataset} ({named}): a difference then says which fell less."]


def _tests(runs: RecordedRuns, count: int) -> Iterator[str]:
    """The effect of unfinished cells and of the ``count`` of comparisons on the verdicts."""
    if runs.unfinished and count:
        yield "Not all planned cells are finished: an early verdict errs in more than 5 %."
    if count:
        chance = f"about {0.05 * count:.2g} verdicts by chance"
        yield f"{count} comparisons of equals give {chance}; Holm's p accounts for all of them."
