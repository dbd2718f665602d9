"""The sections of a run's YAML file as frozen, strict models: no value is converted, no key is ignored."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails

from trainer.evaluation.decoding import Decoding, decodings
from trainer.run.config.problems import refusal, refuse
from trainer.run.config.trl_arguments import checked_lora, checked_trl, finite
from trainer.run.config.yaml_document import write

DEFAULT_SEED = 42  # TRL's
BATCH_WORDS = ("prompts_per_rollout", "sequences_per_update")
_TRL_BATCH = ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps")

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


def _part(value: Any) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict):
        what = f"is {value!r}, and a part is chosen by its name."
        refuse([refusal(value, what, "Write its name, package.module:attribute, or {name: …, option: …}.")])
    elif not isinstance(value.get("name"), str) or not value["name"].strip():
        what = f"has the keys {', '.join(value) or '(none)'} but no `name` that says which part they are options of."
        refuse([refusal(value, what, "Write {name: …, option: …}.")])
    return value


Part = Annotated[Any, BeforeValidator(_part), AfterValidator(finite)]
"""A part by name (text) or by name with options (mapping); whether it exists is the registry's to say."""


def _part_name(part: Any) -> str:
    name: str = part["name"] if isinstance(part, dict) else part
    return name.rpartition(":")[2]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ModelSection(_Section):
    """The policy to train, as given to ``from_pretrained``."""

    name_or_path: Text
    revision: Text | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    attn_implementation: Text | None = None
    trust_remote_code: bool = False
    assistant_prefix: str | None = None
    lora: Annotated[dict[str, Any], AfterValidator(checked_lora)] | None = None


class Columns(_Section):
    """Which columns of a source become ``prompt`` and ``reference``; dots step into struct columns.

    ``prompt`` may also be a text with ``{column}`` in it. ``group`` (a level, a subject) is the column by which
    evaluations report apart as well as together.
    """

    prompt: Text = "prompt"
    reference: Text | Annotated[list[Text], Field(min_length=1)] | Annotated[dict[str, Text], Field(min_length=1)] = (
        "reference"
    )
    group: Text | None = None


class Source(_Section):
    """Rows from a hub id or a local file or folder (``path``), or from a generator of ours (``generator``).

    ``task`` says which of the rewards judge these rows; it is needed only where rewards have a task of their own.
    """

    path: Text | None = None
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


_NAMED_SOURCES = TypeAdapter(dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], Source], config=ConfigDict(strict=True))
Sources = Annotated[Any, BeforeValidator(_sources)]
"""One source, or several by name: ``{gsm8k: {path: …}, countdown: {generator: …}}``."""


class DataSection(_Section):
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
            refuse([refusal(self, f"has no `{part}`: there is nothing to {purpose}.", f"Write `{part}: …`.")])
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


class Reward(_Section):
    """One verifier and what its score weighs in the reward; ``label`` names its metrics.

    With a ``task`` it judges only the rows whose source has the same one; without, all rows.
    """

    verifier: Part
    weight: float = 1.0
    name: Text | None = None
    task: Text | None = None

    @property
    def label(self) -> str:
        """``name``, or else the verifier's own name; of ``package.module:attribute`` the attribute."""
        return self.name or _part_name(self.verifier)


def _listed(tasks: Iterable[str | None]) -> str:
    return ", ".join(sorted(task for task in tasks if task is not None)) or "none"


class AlgorithmSection(_Section):
    """The strategies, and the batch arithmetic in the paper's words, independent of the number of GPUs."""

    advantage: Part = "grpo"
    token_weight: Part = "uniform"
    update_schedule: Part = "single_pass"
    coefficient: Part | None = None
    keep_groups: Literal["step", "forward", "off"] | None = None
    prompts_per_rollout: Count | None = None
    sequences_per_update: Count | None = None

    @property
    def strategies(self) -> dict[str, Any]:
        """What `RLVRTrainer` and `build_strategies` take, by keyword."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in BATCH_WORDS}


class EvaluationSection(_Section):
    """When and how often the held-out rows are answered; ``batch_size`` is per device.

    ``samples`` completions of each row are drawn at ``temperature`` (training's where it gives none), one where neither
    ``samples`` nor ``greedy`` is given; ``greedy`` asks for the most probable completion too. ``keep_best`` names the
    metric, like ``eval/test/avg@4``, whose best checkpoint is kept.
    """

    before: bool = True
    after: bool = True
    every_steps: Count | None = None
    batch_size: Count = 32
    samples: Count | None = None
    temperature: float | None = None
    greedy: bool = False
    keep_best: Text | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.temperature is not None and self.temperature <= 0:
            what = f"is {self.temperature:g}, and sampling needs a temperature above 0."
            refuse([refusal(self, what, "For the most probable completion write `greedy: true`.", ("temperature",))])
        if self.temperature is not None and self.greedy and self.samples is None:
            what = f"is {self.temperature:g}, but only the greedy completion is drawn, which has no temperature."
            refuse([refusal(self, what, "Write `samples: …` too, or delete it.", ("temperature",))])
        if self.keep_best is not None and self.every_steps is None:
            what = f"is {self.keep_best!r}, but the only evaluation of a trained policy is the last one."
            refuse([refusal(self, what, "Write `every_steps: …` too, or delete it.", ("keep_best",))])
        return self

    @property
    def decodings(self) -> list[Decoding]:
        """How the completions of each held-out row are drawn."""
        return decodings(self.samples, self.temperature, self.greedy)


class LoggingSection(_Section):
    """Where metrics go, and how often how many sample completions are shown."""

    report_to: list[Literal["wandb", "tensorboard"]] | Literal["none"] = "none"
    wandb_mode: Literal["offline", "online", "disabled"] = "offline"
    project: Text = "evenkeel"
    samples_every_steps: Count = 10
    num_samples: Annotated[int, Field(ge=0)] = 2


class RunConfig(_Section):
    """One run, as its YAML file says it after ``extends`` and overrides.

    ``trl`` holds only what the file sets; everything else is GRPOConfig's default. ``name`` is the file's stem and
    ``output_dir`` is ``runs/<name>`` where the file gives none.
    """

    name: Annotated[str, Field(pattern=r"^[^/\\\s]+$")]
    output_dir: Text
    num_processes: Count | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    model: ModelSection
    data: DataSection
    rewards: Annotated[list[Reward], Field(min_length=1)]
    algorithm: AlgorithmSection = AlgorithmSection()
    trl: Annotated[dict[str, Any], AfterValidator(checked_trl)] = Field(default_factory=dict)
    evaluation: EvaluationSection = EvaluationSection()
    logging: LoggingSection = LoggingSection()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(conflicts(self.model_dump()))
        labels = [reward.label for reward in self.rewards]
        refuse(
            refusal(label, f"{label!r} already labels rewards.{first}.", "Give it another `name:`.", ("rewards", index))
            for index, label in enumerate(labels)
            if (first := labels.index(label)) != index
        )
        refuse(self._tasks_that_do_not_meet())
        refuse(self._unknown_metric())
        return self

    def _unknown_metric(self) -> Iterator[InitErrorDetails]:
        wanted = self.evaluation.keep_best
        names = [name for decoding in self.evaluation.decodings for name in decoding.metrics]
        known = [f"eval/{dataset}/{name}" for dataset in self.data.test_sources for name in names]
        if wanted is not None and wanted not in known:
            what = f"is {wanted!r}, which no evaluation of this run gives."
            instead = f"Write one of {', '.join(known)}." if known else "Give held-out rows: `data: {test: …}`."
            yield refusal(wanted, what, instead, ("evaluation", "keep_best"))

    def _tasks_that_do_not_meet(self) -> Iterator[InitErrorDetails]:
        judged = {reward.task for reward in self.rewards}
        offered: set[str | None] = set()
        for part, sources in (("train", self.data.train_sources), ("test", self.data.test_sources)):
            for name, source in sources.items():
                offered.add(source.task)
                if source.task not in judged and None not in judged:
                    what = f"is {source.task!r}, and no reward judges such rows; the rewards' tasks: {_listed(judged)}."
                    place = ("data", part, "task") if name == part else ("data", part, name, "task")
                    yield refusal(source.task, what, "Give the source, or a reward, the same `task:`.", place)
        for index, reward in enumerate(self.rewards):
            if reward.task is not None and reward.task not in offered:
                what = f"is {reward.task!r}, and no source has rows of it; the sources' tasks: {_listed(offered)}."
                yield refusal(
                    reward.task, what, "Give a source, or the reward, the same `task:`.", ("rewards", index, "task")
                )

    @property
    def run_seed(self) -> int:
        """The seed of the run, wherever the file gives it; TRL's default where it gives none."""
        return self.trl.get("seed", DEFAULT_SEED) if self.seed is None else self.seed

    @property
    def reward_tasks(self) -> dict[str, str | None]:
        """Label of each reward → the one task whose rows it judges; ``None`` = all."""
        return {reward.label: reward.task for reward in self.rewards}

    def to_yaml(self) -> str:
        """The resolved configuration: loading it gives an equal ``RunConfig``."""
        return write(self.model_dump())

    def save_resolved(self, path: Path) -> None:
        """Write ``to_yaml()`` to a file, which then starts the same run."""
        path.write_text(self.to_yaml(), encoding="utf-8")


def conflicts(run: dict[str, Any]) -> Iterator[InitErrorDetails]:
    """What two sections of a run's plain data say against each other; parts of a wrong type are passed over."""
    algorithm, trl = (section if isinstance(section := run.get(key), dict) else {} for key in ("algorithm", "trl"))
    if run.get("seed") is not None and "seed" in trl:
        what = f"is {trl['seed']!r}, while `seed:` at the top level is {run['seed']!r}."
        yield refusal(
            trl["seed"], what, "Delete one of the two; `seed: null` takes back an inherited one.", ("trl", "seed")
        )
    given = [name for name in BATCH_WORDS if algorithm.get(name) is not None]
    if len(given) == 1:
        (missing,) = set(BATCH_WORDS) - set(given)
        what = f"is given without {missing}, and one alone does not say how a rollout is cut into updates."
        yield refusal(algorithm, what, f"Give {missing} too.", ("algorithm", given[0]))
    if given:
        for name in _TRL_BATCH:
            if name in trl:
                what = f"is {trl[name]!r}, but algorithm.{given[0]} already says how a batch is cut."
                yield refusal(trl[name], what, f"Delete {name}.", ("trl", name))
