"""Where the rows of a run come from: its section ``data``, with one source or several by name."""

from collections.abc import Mapping
from keyword import iskeyword
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, model_validator

from evenkeel.trainer.run.config.problems import problem, raise_all
from evenkeel.trainer.run.config.section import Count, LocalPath, Name, Part, Section, Text

RESERVED = frozenset(
    {"prompt", "prompts", "completion", "completions", "completion_ids", "reference", "task", "group", "self"}
    | {"image", "images", "environment", "environments", "trainer_state", "log_extra", "log_metric"}
)
"""Names that mean something else in a row or for a reward function."""

Names = Annotated[list[Text], Field(min_length=1)] | Annotated[dict[str, Text], Field(min_length=1)]
"""Columns under their own names, or name → column."""


class Columns(Section):
    """What the columns of a source are used for; dots step into struct columns."""

    prompt: Text = "prompt"
    """The question: a column, or a text with ``{column}`` in it."""
    reference: Text | Names = "reference"
    """What the verifier compares with: a column, several, or name → column: ``[names, statements]``."""
    group: Text | None = None
    """A level or subject: evaluations also report each of its values separately."""
    environment: Names | None = None
    """Further arguments of an environment's ``reset``: columns under their own names, or name → column."""

    @property
    def of_reset(self) -> Mapping[str, str]:
        """Argument of an environment's ``reset`` → the column that it is read from."""
        given = self.environment or {}
        return given if isinstance(given, dict) else {path: path for path in given}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, path in self.of_reset.items():
            if name in RESERVED or not name.isidentifier() or iskeyword(name):
                what = f"gives reset the argument {name!r}, which rows use themselves, or no function can have."
                where = ("environment", name) if isinstance(self.environment, dict) else ("environment",)
                raise_all([problem("name-of-an-argument", what, f"Write {{other_name: {path}}}.", where)])
        if self.reference == self.prompt:
            what = f"is {self.reference!r}, which is the prompt: the policy would be shown the answer."
            instead = f"Name another column, or {{problem: {self.prompt}}} for a verifier that reads it."
            raise_all([problem("reference-is-prompt", what, instead, ("reference",))])
        return self


class Source(Section):
    """Rows from one ``path`` or one ``generator``."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["path"]}, {"required": ["generator"]}]})

    path: LocalPath | None = None
    """A file (``.parquet``, ``.jsonl``, ``.json``, ``.csv``), a saved folder, or a hub id."""
    split: Text | None = None
    """Of a hub id or a saved folder."""
    config_name: Text | None = None
    """Of a hub id with several configurations."""
    generator: Part | None = None
    """Generated rows: ``{name: countdown, part: train, train: 256, test: 64, seed: 0}``."""
    columns: Columns | None = None
    """Which columns are the prompt and the reference."""
    max_rows: Count | None = None
    """Number of rows, from the first; ``null`` = all."""
    task: Text | None = None
    """Selects the rewards that score these rows; needed only where rewards have a task."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.generator is None):
            where = "path" if self.path is None else "generator"
            what = "there must be either a path or a generator."
            raise_all([problem("one-source", what, "`null` takes back an inherited one.", (where,))])
        if self.generator is not None:
            given = [name for name in ("split", "config_name") if getattr(self, name) is not None]
            raise_all(problem("option-of-a-path", "is for a path.", "Leave it out.", (name,)) for name in given)
        return self


def _sources(value: Any) -> Any:
    """One source, or a mapping of names to sources; the keys decide which, so that errors name the right place."""
    if not isinstance(value, dict) or not value or value.keys() & Source.model_fields.keys():
        return Source.model_validate(value)
    several = all(isinstance(source, dict | Source) for source in value.values())
    return _NAMED_SOURCES.validate_python(value) if several else Source.model_validate(value)


_NAMED_SOURCES = TypeAdapter(dict[Name, Source], config=ConfigDict(strict=True))
Sources = Annotated[Any, BeforeValidator(_sources, json_schema_input_type=Source | dict[str, Source])]
"""One source, or several by name."""


class DataSection(Section):
    """The rows of a run. Only an evaluation may lack rows to train on."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["train"]}, {"required": ["test"]}]})

    train: Sources | None = None
    """The rows to train on: one source, or several by name: ``{gsm8k: {path: …}, countdown: {generator: …}}``."""
    test: Sources | None = None
    """The held-out rows of the evaluations, one source or several by name."""
    system_prompt: Text | None = None
    """Put before every prompt."""
    max_unusable: Annotated[int, Field(ge=0)] = 0
    """At most this many rows to train on are left out, and named, because no verifier can use their reference; of
    held-out rows only ``evenkeel evaluate`` leaves any out.
    """

    @model_validator(mode="after")
    def _has_rows(self, info: ValidationInfo) -> Self:
        part = "test" if (info.context or {}).get("evaluation_only") else "train"
        if getattr(self, part) is None:
            instead = f"Write `{part}: …`" + ", or use evenkeel evaluate." * (part == "train" and self.test is not None)
            raise_all([problem("no-rows", f"has no `{part}`.", instead)])
        return self

    @property
    def train_sources(self) -> dict[str, Source]:
        """The sources to train on by name; a single one is called ``train``."""
        return _named(self.train, "train")

    @property
    def test_sources(self) -> dict[str, Source]:
        """The held-out sources by name; a single one is called ``test``, and there may be none."""
        return _named(self.test, "test")

    @property
    def placed_sources(self) -> list[tuple[tuple[str, ...], Source]]:
        """All sources, those to train on first, each after the keys that lead to it in the file."""
        parts = {"train": self.train_sources, "test": self.test_sources}
        return [
            (("data", part) if name == part else ("data", part, name), source)
            for part, sources in parts.items()
            for name, source in sources.items()
        ]


def _named(sources: Any, name: str) -> dict[str, Source]:
    return {name: sources} if isinstance(sources, Source) else dict(sources or {})
