"""The sections of a run's YAML file as frozen, strict models: no value is converted, no key is ignored."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from evenkeel.rewards.noise import RewardNoise
from evenkeel.trainer.evaluation.decoding import Decoding, decodings
from evenkeel.trainer.run.config.data_section import DataSection
from evenkeel.trainer.run.config.problems import problem, raise_all
from evenkeel.trainer.run.config.rules import Given, conflicts
from evenkeel.trainer.run.config.section import (
    Count,
    LocalPath,
    Name,
    Part,
    PartByTask,
    Section,
    Text,
    is_by_task,
    meanings_of,
    part_name,
)
from evenkeel.trainer.run.config.trackers import TrackerName
from evenkeel.trainer.run.config.trl_arguments import CheckedBy, check_quantization, grpo_arguments, lora_arguments
from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.step.options import Engine, Speed

DEFAULT_SEED = 42  # TRL's
BATCH_WORDS = ("prompts_per_rollout", "sequences_per_update")
_REVISION = "evenkeel.trainer.algorithms.revisions:RevisionOptions"  # imports torch
_TEACHER = "evenkeel.trainer.algorithms.teachers:TeacherOptions"
_OF_A_TEMPLATE = ["model.assistant_prefix", "data.system_prompt", "environment", "tools", "trl.chat_template_kwargs"]
RAW = "raw"
"""``model.chat_template``: prompts are fed as they are."""


class ModelSection(Section):
    """The policy to train, as given to ``from_pretrained``."""

    name_or_path: LocalPath
    """A folder or a hub id."""
    revision: Text | None = None
    """Branch, tag or commit of a hub id."""
    dtype: Literal["auto", "float32", "bfloat16"] | None = None
    """Of the weights; ``null`` = TRL's default. ``trl.bf16`` and ``trl.fp16`` choose the dtype of computation."""
    attn_implementation: Text | None = None
    """As transformers names it: ``sdpa``, ``eager``, ``flash_attention_2``; ``null`` = its choice."""
    trust_remote_code: bool = False
    """Run code that comes with the model."""
    chat_template: LocalPath | None = None
    """``raw``: a row's prompt is fed as it is. A Jinja file takes the place of the model's own template (``null``)."""
    assistant_prefix: str | None = None
    """Ends every prompt, such as ``<think>``; appended to the chat template's generation prompt."""
    lora: Annotated[dict[str, Any], CheckedBy(lora_arguments)] | None = None
    """An adapter in place of all weights: ``peft.LoraConfig``, with its own names; ``null`` = train all weights."""
    quantization: Annotated[dict[str, Any], AfterValidator(check_quantization)] | None = None
    """QLoRA: the base in 4 bits under the adapter; needs ``lora``. ``transformers.BitsAndBytesConfig``, with its own
    names and QLoRA's defaults: ``{load_in_4bit: true}``.
    """

    @property
    def raw_prompts(self) -> bool:
        """Whether prompts are texts that no template renders."""
        return self.chat_template == RAW

    @property
    def template_place(self) -> str:
        """The setting that the chat template comes from."""
        return f"model.{'name_or_path' if self.chat_template is None else 'chat_template'}"

    @model_validator(mode="after")
    def _trainable(self) -> Self:
        if self.quantization is not None and self.lora is None:
            what = "is given without lora: 4-bit weights are not trained."
            raise_all([problem("quantization-without-lora", what, "Write `lora: {…}` too.", ("quantization",))])
        return self


class Reward(Section):
    """One verifier and the weight of its score in the reward.

    The first one that scores a row decides whether its answer is right.
    """

    verifier: Part
    """By name or with options: ``{name: knights_knaves, scheme: paper}``."""
    weight: float = 1.0
    """Factor of its score in the sum."""
    name: Text | None = None
    """Label of its metrics; ``null`` = the verifier's name, of ``package.module:attribute`` the attribute."""
    task: Text | None = None
    """Score only rows whose source has the same ``task``; ``null`` = all rows."""
    noise: Annotated[dict[str, Any], CheckedBy(lambda: RewardNoise)] | None = None
    """Simulated verifier errors, in training only: `RewardNoise`, ``{false_positive: 0.05, false_negative: 0.15}``."""

    @property
    def label(self) -> str:
        """``name``, else the verifier's (`part_name`)."""
        return self.name or part_name(self.verifier)


class AlgorithmSection(Section):
    """The strategies, and the batch arithmetic in the paper's words, independent of the number of GPUs."""

    advantage: Part = "grpo"
    """The estimator of the advantage: ``{name: pass_at_k, k: 4}``; a weighted sum of several:
    ``{name: mix, of: {grpo: 0.5, maxrl: 0.5}}``.
    """
    token_weight: Part = "uniform"
    """Factor of each token's loss: ``{name: adv_reweight, alpha: 0.2}``."""
    update_schedule: Part = "single_pass"
    """Which tokens each pass over a rollout batch trains: ``{name: lopti, eta: 0.4}``."""
    coefficient: Part | None = None
    """Replaces the clipped ratio: ``{name: dppo, divergence: tv}``; needs ``trl.loss_type: cispo``."""
    prompt_sampler: Part = "uniform"
    """Which prompts come next, ``{name: dynamic, max_rounds: 10}``; ``uniform`` is TRL's order."""
    keep_groups: Literal["step", "forward", "off"] | None = None
    """``step``: a group stays in one optimizer step; ``forward``: in one forward pass; ``off``: rows are shuffled.
    ``null`` = what the strategies need.
    """
    revision: Annotated[dict[str, Any], CheckedBy(partial(resolve_name, _REVISION))] | None = None
    """Generate wrong answers again: ``{references: 3, credit: fewest_edits}``; only for ``advantage: ibpo``."""
    teacher: Annotated[dict[str, Any], CheckedBy(partial(resolve_name, _TEACHER))] | None = None
    """Prompts under which completions are scored again: ``{template: …}`` with the gold answer in it for
    ``rlsd`` and ``sdpo``, ``{sibling_template: …, wrong_siblings: 4}`` with siblings' responses for ``rlcsd``.
    """
    prompts_per_rollout: Count | None = None
    """Prompts generated together, with ``trl.num_generations`` completions each."""
    sequences_per_update: Count | None = None
    """Completions trained in each optimizer step, on any number of GPUs."""

    @property
    def strategies(self) -> dict[str, Any]:
        """What `RLVRTrainer` and `build_strategies` take, by keyword."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in BATCH_WORDS}


class EvaluationSection(Section):
    """When and how often the held-out rows are answered (``configs/evaluation/README.md``)."""

    before: bool = True
    """Evaluate before the first optimizer step; after the last one always."""
    every_steps: Count | None = None
    """Optimizer steps from one evaluation during training to the next; ``null`` = none."""
    batch_size: Count = 32
    """Completions generated at a time on each device."""
    samples: Count | None = None
    """Completions sampled for each row; ``null`` = one, or none with ``greedy``."""
    temperature: Annotated[float, Field(gt=0)] | None = None
    """Temperature of ``samples``; ``null`` = ``trl.temperature``."""
    greedy: bool = False
    """Generate the greedy completion too."""
    keep_best: Text | None = None
    """The metric whose best checkpoint is kept, such as ``eval/test/avg@4``; needs ``every_steps``."""

    @property
    def decodings(self) -> list[Decoding]:
        """How each held-out row is completed."""
        return decodings(self.samples, self.temperature, self.greedy)


class LoggingSection(Section):
    """Where metrics go, how often sample completions are shown, and which rollouts are kept."""

    report_to: list[TrackerName] | Literal["none"] = "none"
    """Trackers, ``[wandb, tensorboard]``: those that transformers has a callback for. Mode, project and team are set
    by the trackers' own variables, such as ``WANDB_MODE``; unset, W&B is offline and the project is ``evenkeel``.
    """
    samples_every_steps: Count = 10
    """Show two sample completions every this many optimizer steps."""
    rollouts: Count | Literal["all", "off"] = 64
    """Completions of each rollout batch (whole groups) that are kept, with all that belongs to them, as parquet in the
    run's directory: a number, ``all`` or ``off``.
    """


class StoppingSection(Section):
    """How a run ends before its last step, and what it does when something hangs."""

    skip_faults: Annotated[int, Field(ge=0)] = 0
    """Optimizer steps with a non-finite loss or gradient that are skipped; the next one stops the run."""
    stall_minutes: Annotated[float, Field(gt=0)] | None = 30.0
    """Minutes without progress until the stacks of all ranks are written to ``stalls/rank-*.txt``; ``null`` = never."""


class _SpeedOfARun(Speed):
    """Defaults of a run that are not the drop-in's, which are TRL's."""

    microbatches = "planned"


class SpeedSection(Section, _SpeedOfARun):  # type: ignore[misc]  # frozen, unknown to mypy
    """Options that make a run faster without changing what it trains: `Speed` of `RLVRTrainer`.

    With planned micro-batches the metric ``entropy`` covers only trained rows (absent if there are none), and
    ``clip_ratio/low_min`` and ``high_max`` are not logged.
    """

    model_config = ConfigDict(json_schema_extra=meanings_of(Speed))

    common_random_numbers: ClassVar[bool] = False  # type: ignore[misc]  # a key at the top of the file
    verify_steps: ClassVar[int] = 1  # type: ignore[misc]  # not keys: fixed
    shared_prompts: ClassVar[None] = None  # type: ignore[misc]
    generation: ClassVar[None] = None  # type: ignore[misc]
    skip_old_logps: ClassVar[None] = None  # type: ignore[misc]
    overlap_generation: ClassVar[None] = None  # type: ignore[misc]


class VLLMSection(Section, Engine):  # type: ignore[misc]  # frozen
    """How far vLLM is trusted, only with ``trl.use_vllm``: the options `Engine` of `RLVRTrainer`."""

    model_config = ConfigDict(json_schema_extra=meanings_of(Engine))

    @property
    def options(self) -> Engine:
        """What `RLVRTrainer` takes."""
        return Engine(**self.model_dump())


class RunConfig(Section):
    """One run: its YAML file after ``extends`` and overrides."""

    model_config = ConfigDict(json_schema_extra=meanings_of(Speed))  # of common_random_numbers

    name: Name
    """Of the run; by default the file's name without ``.yaml``. Never inherited."""
    output_dir: LocalPath
    """Where everything is written; by default ``runs/<name>``. Never inherited."""
    num_processes: Count | None = None
    """Refuse any other number of processes."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Of all random numbers; ``null`` = TRL's default 42."""
    common_random_numbers: bool = False
    model: ModelSection
    """The policy to train."""
    data: DataSection
    """The rows to train on, and the held-out rows."""
    rewards: Annotated[list[Reward], Field(min_length=1)]
    """The verifiers that score completions."""
    branch_of: LocalPath | None = None
    """A checkpoint of another run to start from, ``runs/countdown/checkpoint-80``: its weights, optimizer,
    random states and place in the data are taken over (`evenkeel.trainer.run.branch`); both need
    ``common_random_numbers``.
    """
    environment: PartByTask | None = None
    """What the policy acts on between its turns: a name, `module:Class`, with options, or a mapping task → one."""
    tools: list[Part] = Field(default_factory=list)
    """Functions that the policy may call, by name or `module:function`; `{name: …, time_limit_s: …}` sets a limit."""
    algorithm: AlgorithmSection = AlgorithmSection()
    """The strategies, and how a batch is cut."""
    trl: Annotated[dict[str, Any], CheckedBy(grpo_arguments)] = Field(default_factory=dict)
    """``GRPOConfig`` verbatim; what another section owns is refused with that section's name."""
    speed: SpeedSection = SpeedSection()
    """Options that make a run faster without changing what it trains."""
    vllm: VLLMSection | None = None
    """How far vLLM is trusted; only with ``trl.use_vllm``."""
    evaluation: EvaluationSection = EvaluationSection()
    """When and how the held-out rows are answered."""
    logging: LoggingSection = LoggingSection()
    """Where metrics go, and which completions are kept."""
    stopping: StoppingSection = StoppingSection()
    """Early stops and stalls."""

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get("evaluation_only"):
            raise_all(conflicts(self.model_dump()))
        labels = [reward.label for reward in self.rewards]
        twice = [
            problem("label-twice", f"has the name {label!r} of another.", "Write another `name:`.", ("rewards", index))
            for index, label in enumerate(labels)
            if label in labels[:index]
        ]
        raise_all([*twice, *self._unmatched_tasks(), *self._unread_columns(), *self._beside_raw_prompts()])
        names = [name for decoding in self.evaluation.decodings for name in decoding.metrics]
        known = [f"eval/{dataset}/{name}" for dataset in self.data.test_sources for name in names]
        wanted, is_never = self.evaluation.keep_best, self.evaluation.every_steps is None
        if wanted is not None and (is_never or wanted not in known):
            what = f"is {wanted!r}, which no evaluation during training reports."
            also = ", and `every_steps: …` too" if is_never else ""
            instead = f"Write one of {', '.join(known)}{also}." if known else "Write `data.test: …` too."
            raise_all([problem("unknown-metric", what, instead, ("evaluation", "keep_best"))])
        return self

    def _unmatched_tasks(self) -> Iterator[InitErrorDetails]:
        scored = {reward.task for reward in self.rewards}
        offered = {source.task for _, source in self.data.placed_sources}
        for place, source in self.data.placed_sources:
            if source.task not in scored and None not in scored:
                what = f"no reward scores these rows: their task is {source.task}."
                yield problem("task-without-reward", what, "Give a reward the same `task:`.", (*place, "task"))
        for index, reward in enumerate(self.rewards):
            if reward.task is not None and reward.task not in offered:
                what = f"no source has rows of task {reward.task!r}."
                instead = "Give a source the same `task:`."
                yield problem("task-without-rows", what, instead, ("rewards", index, "task"))

    def _unread_columns(self) -> Iterator[InitErrorDetails]:
        for place, source in self.data.placed_sources:
            reads = source.task in self.environment if is_by_task(self.environment) else self.environment is not None
            if source.columns and source.columns.of_reset and not reads:
                what = "names columns, and these rows have no environment."
                where = (*place, "columns", "environment")
                yield problem("columns-of-no-environment", what, "Write `environment: …` of the run.", where)

    def _beside_raw_prompts(self) -> Iterator[InitErrorDetails]:
        """What only a chat template could write."""
        if not self.model.raw_prompts:
            return
        given = Given(self.model_dump())
        for key in _OF_A_TEMPLATE:
            if given.written(key):
                what = f"needs a template, and model.chat_template: {RAW} has none."
                instead = "Write text into columns.prompt; for turns name a Jinja file."
                yield problem("beside-raw-prompts", what, instead, tuple(key.split(".")))

    @property
    def run_seed(self) -> int:
        """The seed of the run; TRL's default where the file gives none."""
        return DEFAULT_SEED if self.seed is None else self.seed

    @property
    def speed_options(self) -> Speed:
        """What `RLVRTrainer` takes."""
        decided = {name: getattr(SpeedSection, name) for name in SpeedSection.__class_vars__}
        written = {**self.speed.model_dump(), "common_random_numbers": self.common_random_numbers}
        return Speed(**{**decided, **written})

    @property
    def reward_tasks(self) -> dict[str, str | None]:
        """Label of each reward → the one task whose rows it scores; ``None`` = all."""
        return {reward.label: reward.task for reward in self.rewards}

    def argument(self, name: str) -> Any:
        """One of TRL's arguments, as the file gives it or TRL's default. Imports trl, which takes seconds."""
        return self.trl.get(name, grpo_arguments().model_fields[name].default)

    def save_resolved(self, path: Path) -> None:
        """Write the resolved configuration: loading it gives an equal ``RunConfig``, which starts the same run."""
        path.write_text(write(self.model_dump()), encoding="utf-8")
