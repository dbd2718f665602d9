"""Data that are not there, not what was meant, or not worth training on."""

from tests.trainer.run.check.mistakes.mistake import mistake


def problems(part: str, **options: object) -> str:
    """The override that makes a part of the data from the generator of countdown problems."""
    settings = {"name": "countdown", "part": part, "train": 200, "test": 20, "seed": 1, "max_number": 6, **options}
    return (
        f"data.{part}={{path: null, generator: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}}}"
    )


COUNTDOWN = "rewards.0.verifier=countdown"

ROWS = [
    mistake("a file, misspelt", "Did you mean rows.jsonl?", "data.train.path=data/rows.jsnl"),
    mistake("a column, misspelt", "Did you mean prompt?", "data.train.columns={prompt: promt}"),
    mistake("columns under other names", "There are: question, answer", "data.train.path=data/columns.jsonl"),
    mistake("a data file without rows", "empty file", "data.train.path=data/empty.jsonl"),
    mistake("a broken line", "broken.jsonl cannot be loaded", "data.train.path=data/broken.jsonl"),
    mistake("an empty prompt", "row 2", "data.train.path=data/empty_prompt.jsonl"),
    mistake("a prompt that is null", "row 1", "data.train.path=data/null_prompt.jsonl"),
    mistake("the same prompt twice", "the same prompt", "data.train.path=data/twice.jsonl", severity="warning"),
    mistake(
        "one prompt, two references",
        "different references",
        "data.train.path=data/contradiction.jsonl",
        severity="warning",
    ),
    mistake("trained on what is tested", "4 of the 4 held-out", "data.test.path=data/seen.jsonl", severity="warning"),
    mistake("the same file twice", "8 of the 8 held-out", "data.test.path=data/rows.jsonl", severity="warning"),
    mistake(
        "two seeds instead of two parts",
        "held-out rows of data.test are trained on",
        COUNTDOWN,
        problems("train"),
        problems("test", seed=2),
        severity="warning",
    ),
    mistake("semicolons in a CSV", "There are: prompt;reference", "data.train.path=data/semicolons.csv"),
    mistake("a hub id without a split", "split: train", "data.train.path=some/rows"),
    mistake("a data set that no hub has", "some/rows", "data.train={path: some/rows, split: train}"),
    mistake("a reference that is null", "row 3", "data.train.path=data/null_reference.jsonl"),
    mistake("references of two types", "neither a text nor a number", "data.train.path=data/mixed.jsonl"),
    mistake("an unknown generator", "Did you mean countdown?", "data.train={path: null, generator: countdwn}"),
    mistake(
        "a generator's option, misspelt",
        "Did you mean max_number?",
        COUNTDOWN,
        problems("train", max_numbr=9),
        problems("test"),
    ),
    mistake("fewer rows than a rollout", "one rollout takes 4 prompts", "data.train.max_rows=3"),
    mistake("prompts with a chat template", "already carry a chat template", "data.train.path=data/templated.jsonl"),
    mistake(
        "two system prompts", "system message of their own", "data.train.path=data/system.jsonl", "data.system_prompt=x"
    ),
    mistake("a prompt with its answer", "assistant", "data.train.path=data/answered.jsonl", severity="warning"),
    mistake("a saved folder without a split", "Write `split:`", "data.train.path=data/saved"),
    mistake("a folder of files", "Name a file in it", "data.train.path=data"),
    mistake("a brace that is not closed", "braces", "data.train.columns={prompt: '{prompt'}"),
    mistake("a file of an unknown kind", "not a file of a known kind", "data.train.path=data/rows.txt"),
    mistake("both a path and a generator", "both a path and a generator", "data.train.generator=countdown"),
    mistake("neither of them", "neither a path nor a generator", "data.train.path=null"),
    mistake(
        "a task that no reward judges", "no reward judges rows of task", "data.train.task=maths", "rewards.0.task=math"
    ),
    mistake("held-out rows that cannot be judged", "data.test", "data.test.path=data/null_reference.jsonl"),
    mistake("problems without a solution", "nobody can earn it", "data.train.path=data/unsolvable.jsonl", COUNTDOWN),
]
