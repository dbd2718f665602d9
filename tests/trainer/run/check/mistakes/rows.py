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
    mistake("a file, misspelt", "data", "data.train.path=data/rows.jsnl", says="rows.jsonl?"),
    mistake(
        "a teacher of problems whose references hold no answer",
        "answers-for-a-teacher",
        *(problems(part) for part in ("train", "test")),
        COUNTDOWN,
        "algorithm.advantage=sdpo",
        "algorithm.teacher={template: '{prompt} {reference}'}",
        says="data.train",
    ),
    mistake("a column, misspelt", "data", "data.train.columns={prompt: promt}", says="prompt?"),
    mistake("columns under other names", "data", "data.train.path=data/columns.jsonl", says="question, answer"),
    mistake("a data file without rows", "data", "data.train.path=data/empty.jsonl", says="empty file"),
    mistake("a broken line", "data", "data.train.path=data/broken.jsonl", says="broken.jsonl"),
    mistake("an empty prompt", "data", "data.train.path=data/empty_prompt.jsonl", says="row 2"),
    mistake("a prompt that is null", "data", "data.train.path=data/null_prompt.jsonl", says="row 1"),
    mistake("the same prompt twice", "repeated-prompts", "data.train.path=data/twice.jsonl", severity="warning"),
    mistake(
        "one prompt, two references",
        "contradicting-references",
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
        "the same file twice",
        "held-out-rows-trained",
        "data.test.path=data/rows.jsonl",
        severity="warning",
        says="8 of the 8",
    ),
    mistake(
        "two seeds instead of two parts",
        "held-out-rows-trained",
        COUNTDOWN,
        problems("train"),
        problems("test", seed=2),
        severity="warning",
    ),
    mistake("semicolons in a CSV", "data", "data.train.path=data/semicolons.csv", says="prompt;reference"),
    mistake("a hub id without a split", "data", "data.train.path=some/rows", says="split: train"),
    mistake("a data set that no hub has", "data", "data.train={path: some/rows, split: train}", says="some/rows"),
    mistake(
        "a reference that is null", "unusable-reference", "data.train.path=data/null_reference.jsonl", says="row 3"
    ),
    mistake("references of two types", "unusable-reference", "data.train.path=data/mixed.jsonl"),
    mistake("an unknown generator", "unknown-name", "data.train={path: null, generator: countdwn}", says="countdown?"),
    mistake(
        "a generator's option, misspelt",
        "unknown-option",
        COUNTDOWN,
        problems("train", max_numbr=9),
        problems("test"),
        says="max_number?",
    ),
    mistake("fewer rows than a rollout", "data", "data.train.max_rows=3", says="4"),
    mistake(
        "prompts with a chat template",
        "data",
        "data.train.path=data/templated.jsonl",
        says="already carry a chat template",
    ),
    mistake(
        "two system prompts",
        "data",
        "data.train.path=data/system.jsonl",
        "data.system_prompt=x",
        says="system message of their own",
    ),
    mistake(
        "a prompt with its answer", "prompt-ends-with-answer", "data.train.path=data/answered.jsonl", severity="warning"
    ),
    mistake("a saved folder without a split", "data", "data.train.path=data/saved", says="`split:`"),
    mistake("a folder of files", "data", "data.train.path=data", says="Name a file in it"),
    mistake("a brace that is not closed", "data", "data.train.columns={prompt: '{prompt'}", says="braces"),
    mistake("a file of an unknown kind", "data", "data.train.path=data/rows.txt", says="not a file of a known kind"),
    mistake("both a path and a generator", "one-source", "data.train.generator=countdown"),
    mistake("neither of them", "one-source", "data.train.path=null"),
    mistake("a task that no reward judges", "task-without-reward", "data.train.task=maths", "rewards.0.task=math"),
    mistake(
        "held-out rows that cannot be judged",
        "unusable-reference",
        "data.test.path=data/null_reference.jsonl",
        says="data.test",
    ),
    mistake("problems without a solution", "unusable-reference", "data.train.path=data/unsolvable.jsonl", COUNTDOWN),
]
