"""The sections of a run's YAML file as frozen, strict models: no value is converted, no key is ignored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from evenkeel.trainer.evaluation.decoding import Decoding, decodings
from evenkeel.trainer.run.config.data_section import DataSection
from evenkeel.trainer.run.config.problems import problem, raise_all
from evenkeel.trainer.run.config.rules import BATCH_WORDS, conflicts
from evenkeel.trainer.run.config.section import Count, LocalPath, Name, Part, Section, Text, not_expanded, part_name
from evenkeel.trainer.run.config.trackers import TrackerName
from evenkeel.trainer.run.config.trl_arguments import checked_by, grpo_arguments, lora_arguments, revision_options
from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.step.options import Engine, Speed

DEFAULT_SEED = 42  # TRL's


class QuantizationSection(Section):
    """QLoRA: a base model in 4 bits under a trained adapter. `transformers.BitsAndBytesConfig`, with its own names.

    The defaults are QLoRA's (arXiv 2305.14314, section 3): NormalFloat, quantization constants quantized once more,
    products in bfloat16.
    """

    load_in_4bit: Literal[True]
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = "nf4"
    bnb_4bit_use_double_quant: bool = True
    bnb_4bit_compute_dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"


class ModelSection(Section):
    """The policy to train, as given to ``from_pretrained``."""

    name_or_path: LocalPath
    revision: Text | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    attn_implementation: Text | None = None
    trust_remote_code: bool = False
    assistant_prefix: str | None = None
    lora: Annotated[dict[str, Any], checked_by(lora_arguments)] | None = None
    quantization: QuantizationSection | None = None

    @model_validator(mode="after")
    def _trainable(self) -> Self:
        if self.quantization is not None and self.lora is None:
            what = "is given without lora, and weights of 4 bits cannot be trained."
            instead = "Write `lora: {…}` beside it, or delete it."
            raise_all([problem("quantization-without-lora", what, instead, ("quantization",))])
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


class AlgorithmSection(Section):
    """The strategies, and the batch arithmetic in the paper's words, independent of the number of GPUs."""

    advantage: Part = "grpo"
    token_weight: Part = "uniform"
    update_schedule: Part = "single_pass"
    coefficient: Part | None = None
    prompt_sampler: Part = "uniform"
    keep_groups: Literal["step", "forward", "off"] | None = None
    revision: Annotated[dict[str, Any], checked_by(revision_options)] | None = None
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
            instead = "For the most probable completion write `greedy: true`."
            raise_all([problem("temperature-not-positive", what, instead, ("temperature",))])
        if self.temperature is not None and self.greedy and self.samples is None:
            what = f"is {self.temperature:g}, but only the greedy completion is drawn, which has no temperature."
            instead = "Write `samples: …` too, or delete it."
            raise_all([problem("temperature-of-greedy", what, instead, ("temperature",))])
        if self.keep_best is not None and self.every_steps is None:
            what = f"is {self.keep_best!r}, but the only evaluation of a trained policy is the last one."
            instead = "Write `every_steps: …` too, or delete it."
            raise_all([problem("keep-best-of-one", what, instead, ("keep_best",))])
        return self

    @property
    def decodings(self) -> list[Decoding]:
        """How the completions of each held-out row are drawn."""
        return decodings(self.samples, self.temperature, self.greedy)


def _without_comma(tag: str) -> str:
    if "," in tag:
        what = f"is {tag!r}, and W&B reads a comma as the end of a tag."
        raise_all([problem("comma-in-tag", what, "Write it without a comma.")])
    return tag


Tag = Annotated[str, Field(min_length=1), AfterValidator(_without_comma)]


def _rollouts(value: Any) -> Any:
    if value not in ("all", "off") and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        what = f"is {value!r}, which is neither a whole number above 0, nor all, nor off."
        raise_all([problem("rollouts-to-keep", what, "Write all, off, or how many of each batch: 64.")])
    return value


RolloutCount = Annotated[Any, BeforeValidator(_rollouts)]
"""How many rollouts of each batch are kept: ``all``, ``off`` or a whole number above 0."""


class LoggingSection(Section):
    """Where metrics go, how often how many sample completions are shown, and which rollouts are kept.

    ``entity``, ``tags`` and ``group`` are W&B's; without ``group`` it is the run's name, in a sweep the sweep's.
    ``wandb_upload_seconds``: how long the end of a run waits for W&B to take what is left.

    ``rollouts``: ``all``, ``off``, or of how many completions of each rollout batch (whole groups) everything is kept
    as parquet, ``rollouts_max_mb`` MiB at most; ``rollout_scores`` keeps log π_old and entropies with them.

    ``doctor``: say what the rules of `evenkeel.trainer.doctor` find in the log, each finding once.
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
    doctor: bool = True


class StoppingSection(Section):
    """How a run ends before its last step, and what it does when something hangs.

    ``grace_seconds``: how long after SIGTERM the current rollout batch may take before the run ends without a new
    checkpoint, and one that is being written then has as long again; ``None`` waits for it. ``skip_faults``: how many
    optimizer steps with a non-finite loss or gradient are left out; the next one stops the run. ``stall_minutes``:
    after so long without progress the stacks of all ranks and verifier processes are written, ``None`` = never; with
    ``stall_aborts`` the run then ends. ``idle_batches``: after so many rollout batches in a row that trained nothing
    the run ends, ``None`` = never; those whose answers are all right do not count. ``verifier_patience_seconds``: a
    verifier of the user that judges one batch for longer is reported with its rank and row; it is ended by its own
    ``timeout_s``.
    """

    grace_seconds: Annotated[float, Field(gt=0)] | None = None
    skip_faults: Annotated[int, Field(ge=0)] = 0
    stall_minutes: Annotated[float, Field(gt=0)] | None = 30.0
    stall_aborts: bool = False
    idle_batches: Count | None = 20
    verifier_patience_seconds: Annotated[float, Field(gt=0)] = 60.0


class _SpeedOfARun(Speed):
    """Where a run differs from the drop-in, whose defaults are TRL's own ways."""

    microbatches = "planned"
    skip_old_logps = None  # where planned


class SpeedSection(Section, _SpeedOfARun):  # type: ignore[misc]  # frozen, which mypy does not read off the configuration
    """The section ``speed``: fields, types and meanings are those of `Speed`."""

    common_random_numbers: ClassVar[bool] = False  # type: ignore[misc]  # a key of the run

    def options(self, *, common_random_numbers: bool) -> Speed:
        """What `RLVRTrainer` takes."""
        return Speed(**self.model_dump(), common_random_numbers=common_random_numbers)


class _EngineOfARun(Engine):
    """Where a run differs from the drop-in, which checks only what TRL checks."""

    check_agreement_every = 1


class VLLMSection(Section, _EngineOfARun):  # type: ignore[misc]  # frozen
    """The section ``vllm``: fields, types and meanings are those of `Engine`."""

    @property
    def options(self) -> Engine:
        """What `RLVRTrainer` takes."""
        return Engine(**self.model_dump())


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
    trl: Annotated[dict[str, Any], checked_by(grpo_arguments)] = Field(default_factory=dict)
    speed: SpeedSection = SpeedSection()
    vllm: VLLMSection | None = None
    evaluation: EvaluationSection = EvaluationSection()
    logging: LoggingSection = LoggingSection()
    stopping: StoppingSection = StoppingSection()

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        raise_all(conflicts(self.model_dump(), trains=not (info.context or {}).get("evaluation_only")))
        labels = [reward.label for reward in self.rewards]
        raise_all(
            problem(
                "label-twice",
                f"{label!r} already labels rewards.{first}.",
                "Give it another `name:`.",
                ("rewards", index),
            )
            for index, label in enumerate(labels)
            if (first := labels.index(label)) != index
        )
        raise_all(self._unmatched_tasks())
        names = [name for decoding in self.evaluation.decodings for name in decoding.metrics if "gap" not in name]
        known = [f"eval/{dataset}/{name}" for dataset in self.data.test_sources for name in names]
        if (wanted := self.evaluation.keep_best) is not None and wanted not in known:
            what = f"is {wanted!r}, which no evaluation of this run reports."
            instead = f"Write one of {', '.join(known)}."
            raise_all([problem("unknown-metric", what, instead, ("evaluation", "keep_best"))])
        for name in ("deepspeed", "fsdp_config"):
            if isinstance(path := self.trl.get(name), str):
                raise_all(not_expanded(path, "trl", name))
        return self

    def _unmatched_tasks(self) -> Iterator[InitErrorDetails]:
        judged = {reward.task for reward in self.rewards}
        parts = {"train": self.data.train_sources, "test": self.data.test_sources}
        offered = {source.task for sources in parts.values() for source in sources.values()}

        def listed(tasks: set[str | None]) -> str:
            return ", ".join(sorted(task for task in tasks if task is not None)) or "none"

        for part, name, source in [(part, *each) for part, sources in parts.items() for each in sources.items()]:
            if source.task not in judged and None not in judged:
                rows = "without a task" if source.task is None else f"of task {source.task!r}"
                what = f"no reward judges rows {rows}; the rewards' tasks: {listed(judged)}."
                place = ("data", part, "task") if name == part else ("data", part, name, "task")
                instead = "Give the source, or a reward, the same `task:`."
                yield problem("task-without-reward", what, instead, place)
        for index, reward in enumerate(self.rewards):
            if reward.task is not None and reward.task not in offered:
                what = f"no source has rows of task {reward.task!r}; the sources' tasks: {listed(offered)}."
                instead = "Give a source, or the reward, the same `task:`."
                yield problem("task-without-rows", what, instead, ("rewards", index, "task"))

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
