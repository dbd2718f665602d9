"""The parts of a run, built from its file: each is built once, when it is first used."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from evenkeel.rewards import GENERATORS, Verifier, build_verifier, reward_functions
from evenkeel.rewards.noise import RewardNoise
from evenkeel.rewards.references import check_rewards
from evenkeel.rewards.user_verifiers import TRLFunction
from evenkeel.trainer.run.config import (
    BatchPlan,
    RunConfig,
    Source,
    batch_plan,
    grpo_config,
    load_config,
    lora_config,
    quantization_config,
)
from evenkeel.trainer.run.config.schema import VLLMSection
from evenkeel.trainer.run.data.rows import load_rows
from evenkeel.trainer.run.environments import Environments, environments_of, routed, try_on_rows
from evenkeel.trainer.run.processes import print_line
from evenkeel.trainer.run.tokenizer import load_tokenizer
from evenkeel.trainer.step.options import Speed

if TYPE_CHECKING:
    from evenkeel.trainer.algorithms.strategies import Strategies


@dataclass
class Experiment:
    """A run file and the parts that are built from it. A part that cannot be built raises a `Refusal`.

    A part may be assigned, for example by a check that continues without a refused one.

    Attributes:
        folder: where relative paths of rows are looked for, before the current directory.
        processes: number of processes of the run.
        recorded_choices: `choices` of the run that is resumed; what it did not choose is not chosen now.
    """

    config: RunConfig
    folder: Path
    processes: int = 1
    recorded_choices: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of_file(
        cls, path: str | Path, overrides: Sequence[str] = (), *, processes: int = 1, evaluation_only: bool = False
    ) -> Self:
        """The experiment of a YAML file (`load_config`)."""
        config = load_config(path, overrides, evaluation_only=evaluation_only)
        return cls(config, Path(path).resolve().parent, processes)

    @cached_property
    def verifiers(self) -> dict[str, Verifier]:
        """Label → verifier."""
        return {reward.label: build_verifier(reward.verifier) for reward in self.config.rewards}

    @property
    def _measuring(self) -> set[str]:
        """Labels of the rewards with weight 0."""
        return {reward.label for reward in self.config.rewards if reward.weight == 0}

    @cached_property
    def environments(self) -> Environments:
        """By task, with the tools of the run."""
        return environments_of(self.config)

    @cached_property
    def strategies(self) -> "Strategies":
        """The strategies of ``algorithm:``, each tried."""
        from evenkeel.trainer.algorithms.strategies import build_strategies

        return build_strategies(**self.config.algorithm.strategies)

    @cached_property
    def rows(self) -> dict[str, Any]:
        """``train``: all rows to train on but up to ``data.max_unusable`` unusable ones; and the held-out sets.

        Each held-out set is a dataset of its own, ``test.<name>``, or ``test`` alone. Each reference is tried on every
        verifier that will score it.
        """
        train = {"data.train": [*self.config.data.train_sources.values()]}
        return self._tried({**train, **self._held_out_sources}, 0)

    @cached_property
    def held_out(self) -> dict[str, Any]:
        """Held-out sets by name, for an evaluation alone: each without up to ``data.max_unusable`` unusable rows."""
        found = self._tried(self._held_out_sources, self.config.data.max_unusable)
        return {part.removeprefix("test."): rows for part, rows in found.items()}

    @property
    def _held_out_sources(self) -> dict[str, list[Source]]:
        sets = self.config.data.test_sources
        alone = [*sets] == ["test"]
        return {"data.test" if alone else f"data.test.{name}": [each] for name, each in sets.items()}

    def _tried(self, parts: Mapping[str, Sequence[Source]], most_held_out: int) -> dict[str, Any]:
        """Part, without ``data.``, → its usable rows, tried on verifiers and environments."""
        most = {**dict.fromkeys(parts, most_held_out), "data.train": self.config.data.max_unusable}
        rows = {label: self._usable(parts[label], label, most[label]) for label in parts}
        try_on_rows(self.environments, rows)
        return {label.removeprefix("data."): routed(each, self.environments) for label, each in rows.items()}

    def loaded(self, sources: Iterable[Source], system_prompt: str | None) -> Any:
        """The rows of ``sources`` one after another, whether or not a verifier can use them."""
        options: Any = {"generators": GENERATORS, "system_prompt": system_prompt, "base_dir": self.folder}
        options["raw"] = self.config.model.raw_prompts
        of_trl = any(isinstance(each, TRLFunction) for each in self.verifiers.values())
        sampler = self.config.algorithm.prompt_sampler
        column = sampler.get("column") if isinstance(sampler, dict) else None
        return load_rows(sources, all_columns=of_trl, column=column, **options)

    def _usable(self, sources: Iterable[Source], label: str, most_unusable: int) -> Any:
        rows = self.loaded(sources, self.config.data.system_prompt)
        tasks = rows["task"] if "task" in rows.column_names else None
        usable = check_rewards(
            self.verifiers,
            self.config.reward_tasks,
            rows["reference"],
            tasks,
            label,
            rows=rows,
            max_unusable=most_unusable,
            only_measure=self._measuring,
        )
        return rows if len(usable) == len(rows) else rows.select(usable)

    @cached_property
    def plan(self) -> BatchPlan:
        """The arithmetic of the batch on these processes."""
        return batch_plan(self.config, self.processes)

    @property
    def steps_per_rollout(self) -> int:
        """Optimizer steps in which one rollout batch is trained, over all passes of the update schedule."""
        return self.plan.optimizer_steps_per_rollout * self.strategies.schedule.num_passes

    @cached_property
    def cut(self) -> Literal["by_rank", "over_all_ranks"]:
        """How a rollout batch is cut into optimizer steps; ``over_all_ranks``: alike on any number of processes."""
        if self.plan.optimizer_steps_per_rollout == 1 or self._was_left_out("over_all_ranks"):
            return "by_rank"
        from evenkeel.trainer.step.choices import divides_over_ranks

        if divides_over_ranks(self.args, self.strategies.keep_groups):
            return "over_all_ranks"
        if self.processes > 1:
            print_line("Each process cuts its own rows: another number of processes would make other updates.")
        return "by_rank"

    def _was_left_out(self, choice: str) -> bool:
        """The run that is resumed did not make this choice, or did not know it."""
        return bool(self.recorded_choices) and not self.recorded_choices.get(choice)

    @property
    def choices(self) -> dict[str, bool]:
        """Choices that the code made: the trainer's `SWITCHES`, and whether rows are cut ``over_all_ranks``."""
        return {**self.trainer.parts.choices, "over_all_ranks": self.cut == "over_all_ranks"}

    @property
    def speed(self) -> Speed:
        """The file's options of speed, without those that the run that is resumed did not use."""
        from evenkeel.trainer.step.choices import SWITCHES

        stock: dict[str, Any] = {name: getattr(Speed, name) for name in SWITCHES if self._was_left_out(name)}
        return replace(self.config.speed_options, **stock)

    @cached_property
    def args(self) -> Any:
        """TRL's arguments."""
        return grpo_config(self.config, self.processes)

    @property
    def tokenizer(self) -> Any:
        """The policy's tokenizer (`load_tokenizer`)."""
        return self._tokenizer[0]

    @cached_property
    def _tokenizer(self) -> tuple[Any, bool]:
        return load_tokenizer(self.config)

    @cached_property
    def environment_arguments(self) -> dict[str, Any]:
        """Arguments of `RLVRTrainer` for `environments`; TRL's warning that they are experimental is silenced."""
        if not self.environments:
            return {}
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        return {"environment_factory": self.environments.get(None) or dict(self.environments)}

    @cached_property
    def reward_functions(self) -> list[Any]:
        """The verifiers as TRL's reward functions."""
        return reward_functions(
            self.verifiers,
            tasks=self.config.reward_tasks,
            prefilled_thought=self._tokenizer[1],
            noise={reward.label: RewardNoise(**reward.noise) for reward in self.config.rewards if reward.noise},
            only_measure=self._measuring,
        )

    @cached_property
    def trainer(self) -> Any:
        """The trainer with its model loaded, without transformers' own printing."""
        from transformers import PrinterCallback, ProgressCallback
        from transformers.utils.logging import disable_progress_bar

        from evenkeel.trainer import RLVRTrainer
        from evenkeel.trainer.step.options import Evaluation, Guards

        config, args = self.config, self.args
        disable_progress_bar()  # of loading and saving
        held_out = {part.removeprefix("test."): rows for part, rows in self.rows.items() if part != "train"}
        trainer = RLVRTrainer(
            model=config.model.name_or_path,
            reward_funcs=self.reward_functions,
            args=args,
            train_dataset=self.rows["train"],
            eval_dataset=held_out or None,
            processing_class=self.tokenizer,
            peft_config=lora_config(config),
            quantization_config=quantization_config(config),
            strategies=self.strategies,
            cut=self.cut,
            speed=self.speed,
            engine=(config.vllm or VLLMSection()).options,
            evaluation=Evaluation(config.run_seed, config.evaluation.decodings),
            **self.environment_arguments,
            guards=Guards(Path(args.output_dir) / "faults", config.stopping.skip_faults),
        )
        for noisy in (ProgressCallback, PrinterCallback):
            trainer.remove_callback(noisy)
        for adapter in getattr(trainer.model, "peft_config", {}).values():
            for name, value in vars(adapter).items():
                if isinstance(value, set):  # each process would write it in another order
                    setattr(adapter, name, sorted(value))
        return trainer
