"""The sections of a run's YAML file as frozen, strict models: no value is converted, no key is ignored."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from trainer.evaluation.decoding import Decoding, decodings
from trainer.run.config.conflicts import conflicts
from trainer.run.config.data_section import DataSection
from trainer.run.config.problems import refusal, refuse
from trainer.run.config.quantization import QuantizationSection
from trainer.run.config.rules import BATCH_WORDS
from trainer.run.config.section import (
    Count,
    LocalPath,
    Name,
    Part,
    RolloutCount,
    Section,
    Text,
    not_expanded,
    part_name,
)
from trainer.run.config.speed import SpeedSection
from trainer.run.config.stopping import StoppingSection
from trainer.run.config.trackers import TrackerName
from trainer.run.config.trl_arguments import checked_lora, checked_revision, checked_trl
from trainer.run.config.vllm import VLLMSection
from trainer.run.config.yaml_document import write

DEFAULT_SEED = 42  # TRL's


class ModelSection(Section):
    """The policy to train, as given to ``from_pretrained``."""

    name_or_path: LocalPath
    revision: Text | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    attn_implementation: Text | None = None
    trust_remote_code: bool = False
    assistant_prefix: str | None = None
    lora: Annotated[dict[str, Any], AfterValidator(checked_lora)] | None = None
    quantization: QuantizationSection | None = None

    @model_validator(mode="after")
    def _trainable(self) -> Self:
        if self.quantization is not None and self.lora is None:
            what = "is given without lora, and weights of 4 bits cannot be trained."
            refuse([refusal(self, what, "Write `lora: {…}` beside it, or delete it.", ("quantization",))])
        return self


class Reward(Section):
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
        return self.name or part_name(self.verifier)


def _listed(tasks: Iterable[str | None]) -> str:
    return ", ".join(sorted(task for task in tasks if task is not None)) or "none"


class AlgorithmSection(Section):
    """The strategies, and the batch arithmetic in the paper's words, independent of the number of GPUs."""

    advantage: Part = "grpo"
    token_weight: Part = "uniform"
    update_schedule: Part = "single_pass"
    coefficient: Part | None = None
    prompt_sampler: Part = "uniform"
    keep_groups: Literal["step", "forward", "off"] | None = None
    revision: Annotated[dict[str, Any], AfterValidator(checked_revision)] | None = None
    prompts_per_rollout: Count | None = None
    sequences_per_update: Count | None = None
    cut: Literal["by_rank", "over_all_ranks"] = "by_rank"

    @property
    def strategies(self) -> dict[str, Any]:
        """What `RLVRTrainer` and `build_strategies` take, by keyword."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in (*BATCH_WORDS, "cut")}


class EvaluationSection(Section):
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


def _without_comma(tag: str) -> str:
    if "," in tag:
        refuse(
            [refusal(tag, f"is {tag!r}, and W&B is told of tags with commas between them.", "Write no comma in it.")]
        )
    return tag


Tag = Annotated[str, Field(min_length=1), AfterValidator(_without_comma)]


class LoggingSection(Section):
    """Where metrics go, how often how many sample completions are shown, and which rollouts are kept.

    ``entity``, ``tags`` and ``group`` are W&B's; without ``group`` it is the run's name, in a sweep the sweep's.
    ``wandb_upload_seconds``: how long the end of a run waits for W&B to take what is left.

    ``rollouts``: ``all``, ``off``, or of how many completions of each rollout batch (whole groups) everything is kept
    as parquet, ``rollouts_max_mb`` MiB at most; ``rollout_scores`` keeps log π_old and entropies with them.
    """

    report_to: list[TrackerName] | Literal["none"] = "none"
    wandb_mode: Literal["offline", "online", "disabled"] = "offline"
    project: Text = "evenkeel"
    entity: Text | None = None
    tags: list[Tag] = Field(default_factory=list)
    group: Text | None = None
    wandb_upload_seconds: Annotated[float, Field(gt=0)] = 120.0
    samples_every_steps: Count = 10
    num_samples: Annotated[int, Field(ge=0)] = 2
    rollouts: RolloutCount = 64
    rollouts_max_mb: Annotated[float, Field(gt=0)] = 512
    rollout_scores: bool = False


class RunConfig(Section):
    """One run, as its YAML file says it after ``extends`` and overrides.

    ``trl`` holds only what the file sets; everything else is GRPOConfig's default. ``name`` is the file's stem and
    ``output_dir`` is ``runs/<name>`` where the file gives none. ``common_random_numbers``: the noise of a token is made
    of seed, rollout batch, prompt, sample and position, so that variants of a sweep differ where their policies do.
    """

    name: Name
    output_dir: LocalPath
    num_processes: Count | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    common_random_numbers: bool = False
    model: ModelSection
    data: DataSection
    rewards: Annotated[list[Reward], Field(min_length=1)]
    algorithm: AlgorithmSection = AlgorithmSection()
    trl: Annotated[dict[str, Any], AfterValidator(checked_trl)] = Field(default_factory=dict)
    speed: SpeedSection = SpeedSection()
    vllm: VLLMSection | None = None
    evaluation: EvaluationSection = EvaluationSection()
    logging: LoggingSection = LoggingSection()
    stopping: StoppingSection = StoppingSection()

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        refuse(conflicts(self.model_dump(), trains=not (info.context or {}).get("evaluation_only")))
        labels = [reward.label for reward in self.rewards]
        refuse(
            refusal(label, f"{label!r} already labels rewards.{first}.", "Give it another `name:`.", ("rewards", index))
            for index, label in enumerate(labels)
            if (first := labels.index(label)) != index
        )
        refuse(self._tasks_that_do_not_meet())
        refuse(self._unknown_metric())
        for name in ("deepspeed", "fsdp_config"):
            if isinstance(path := self.trl.get(name), str):
                refuse(not_expanded(path, "trl", name))
        return self

    def _unknown_metric(self) -> Iterator[InitErrorDetails]:
        wanted = self.evaluation.keep_best
        names = [name for decoding in self.evaluation.decodings for name in decoding.metrics if "gap" not in name]
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
