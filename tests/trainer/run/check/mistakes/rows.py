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
    mistake("a file, misspelt", "refusal", "data.train.path=data/rows.jsnl", says="rows.jsonl?"),
    mistake("a column, misspelt", "refusal", "data.train.columns={prompt: promt}", says="prompt?"),
    mistake("the same prompt twice", "repeated-prompts", "data.train.path=data/twice.jsonl", severity="warning"),
    mistake(
        "one prompt, two references",
        "repeated-prompts",
        "data.train.path=data/contradiction.jsonl",
        severity="warning",
    ),
    mistake(
        "trained on what is tested",
        "held-out-rows-trained",
        "data.test.path=data/seen.jsonl",
        severity="warning",
        says="4 of the 4",
    ),
    mistake(
        "a reference that is null", "unusable-reference", "data.train.path=data/null_reference.jsonl", says="row 3"
    ),
    mistake("fewer rows than a rollout", "refusal", "data.train.max_rows=3", says="4"),
    mistake(
        "a prompt with its answer", "prompt-ends-with-answer", "data.train.path=data/answered.jsonl", severity="warning"
    ),
    mistake("a task that no reward judges", "task-without-reward", "data.train.task=maths", "rewards.0.task=math"),
    mistake(
        "held-out rows that cannot be scored",
        "unusable-reference",
        "data.test.path=data/null_reference.jsonl",
        says="data.test",
    ),
]
