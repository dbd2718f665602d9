"""Where the rows of a run come from: its section ``data``, with one source or several by name."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationInfo, model_validator

from trainer.run.config.problems import refusal, refuse
from trainer.run.config.section import Count, LocalPath, Part, Section, Text


class Columns(Section):
    """Which columns of a source become ``prompt`` and ``reference``; dots step into struct columns.

    ``prompt`` may also be a text with ``{column}`` in it. ``group`` (a level, a subject) is the column by which
    evaluations report apart as well as together.
    """

    prompt: Text = "prompt"
    reference: Text | Annotated[list[Text], Field(min_length=1)] | Annotated[dict[str, Text], Field(min_length=1)] = (
        "reference"
    )
    group: Text | None = None

    @model_validator(mode="after")
    def _two_columns(self) -> Self:
        if self.reference == self.prompt:
            what = f"is {self.reference!r}, which is the prompt too: the policy would be shown what it is to find."
            instead = (
                f"Name the column of answers; of a verifier that reads the problem write {{problem: {self.prompt}}}."
            )
            refuse([refusal(self.reference, what, instead, ("reference",))])
        return self


class Source(Section):
    """Rows from a hub id or a local file or folder (``path``), or from a generator of ours (``generator``).

    ``task`` says which of the rewards judge these rows; it is needed only where rewards have a task of their own.
    """

    path: LocalPath | None = None
    split: Text | None = None
    config_name: Text | None = None
    generator: Part | None = None
    columns: Columns | None = None
    max_rows: Count | None = None
    task: Text | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.path is None) == (self.generator is None):
            neither, instead = (
                self.path is None,
                "an inherited one is taken back with `path: null` or `generator: null`.",
            )
            what = "there is neither a path nor a generator." if neither else "there are both a path and a generator."
            refuse([refusal(self, what, f"Give one of the two; {instead}", ("path" if neither else "generator",))])
        if self.generator is not None:
            given = [name for name in ("split", "config_name") if getattr(self, name) is not None]
            what = "belongs to a path, not to a generator."
            refuse(refusal(self, what, f"Delete {name}.", (name,)) for name in given)
        return self


def _sources(value: Any) -> Any:
    """One source, or a mapping of names to sources; told apart by the keys, so that errors name the right place."""
    if not isinstance(value, dict) or not value or value.keys() & Source.model_fields.keys():
        return Source.model_validate(value)
    sources = all(isinstance(source, dict | Source) for source in value.values())
    return _NAMED_SOURCES.validate_python(value) if sources else Source.model_validate(value)


NAME_OF_A_SOURCE = r"^[\w.-]+$"
_NAMED_SOURCES = TypeAdapter(
    dict[Annotated[str, Field(pattern=NAME_OF_A_SOURCE)], Source], config=ConfigDict(strict=True)
)
Sources = Annotated[Any, BeforeValidator(_sources)]
"""One source, or several by name: ``{gsm8k: {path: …}, countdown: {generator: …}}``."""


_ONLY_HELD_OUT = "Write `train: …`; a file that only evaluates goes to scripts/evaluate.py CHECKPOINT FILE."


class DataSection(Section):
    """The rows to train on, the held-out rows of the evaluations, and the system prompt put before both.

    Up to ``max_unusable`` of the rows to train on are left out, and named, where a verifier cannot use their reference;
    more are refused, and so is any such held-out row.

    Only a file that is read to evaluate (validation context ``evaluation_only``) may be without rows to train on.
    """

    train: Sources | None = None
    test: Sources | None = None
    system_prompt: Text | None = None
    max_unusable: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _has_what_it_is_read_for(self, info: ValidationInfo) -> Self:
        part = "test" if (info.context or {}).get("evaluation_only") else "train"
        if getattr(self, part) is None:
            purpose = "evaluate on" if part == "test" else "train on"
            instead = f"Write `{part}: …`." if part == "test" or self.test is None else _ONLY_HELD_OUT
            refuse([refusal(self, f"has no `{part}`: there is nothing to {purpose}.", instead)])
        return self

    @property
    def train_sources(self) -> dict[str, Source]:
        """The sources to train on by name; a single one is called ``train``."""
        return {} if self.train is None else _named(self.train, "train")

    @property
    def test_sources(self) -> dict[str, Source]:
        """The held-out sources by name; a single one is called ``test``, and there may be none."""
        return {} if self.test is None else _named(self.test, "test")


def _named(sources: Any, name: str) -> dict[str, Source]:
    return {name: sources} if isinstance(sources, Source) else dict(sources)
