"""The collaborators of a trainer, made once and in one place, out of what TRL has set up."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from evenkeel.trainer.step.advantages import Advantages
from evenkeel.trainer.step.checkpoint import ROLLOUT_BATCHES, Checkpoint
from evenkeel.trainer.step.compatibility import (
    SWITCHES,
    Loaded,
    Option,
    Settings,
    cuts_passes,
    drops,
    problems_of,
    refuse,
    rope_type,
)
from evenkeel.trainer.step.evaluation import HeldOut
from evenkeel.trainer.step.generation import CommonRandomNumbers, SampleKeys, preallocated_cache
from evenkeel.trainer.step.guards import DiskGuard, FaultGuard
from evenkeel.trainer.step.judging import Judging, is_plain
from evenkeel.trainer.step.loss import Loss
from evenkeel.trainer.step.metrics import TokenClassMeter
from evenkeel.trainer.step.microbatches import Microbatches, PlannedCut
from evenkeel.trainer.step.options import Engine, Evaluation, Guards, Schedule, Speed
from evenkeel.trainer.step.other_prompts import Revisions, Teacher, unusable_references
from evenkeel.trainer.step.packing import attention_length, unshareable
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.prompts import Prompts
from evenkeel.trainer.step.provenance import BATCHES, ROUNDING, EngineCheck, Provenance, compute_dtype
from evenkeel.trainer.step.records import Recorder
from evenkeel.trainer.step.rollout import Lag
from evenkeel.trainer.step.scoring import Scoring
from evenkeel.trainer.step.setup import Ranks, parameters_are_sharded


@dataclass(frozen=True)
class Watch:
    """The guards of a run."""

    faults: FaultGuard
    disk: DiskGuard


@dataclass(frozen=True)
class Parts:
    """What `RLVRTrainer` calls, in the order in which a step does; none of them knows the trainer.

    Attributes:
        is_compact: transformers generates compactly.
        choices: what of `SWITCHES` is taken.
        common_noise, row_keys, teacher, revisions, engine_check, watch: ``None`` where they were not asked for.
    """

    ranks: Ranks
    schedule: Schedule
    phases: Phases
    lag: Lag
    prompts: Prompts
    is_compact: bool
    choices: dict[str, bool]
    common_noise: CommonRandomNumbers | None
    row_keys: SampleKeys | None
    provenance: Provenance
    judging: Judging
    scoring: Scoring
    teacher: Teacher | None
    revisions: Revisions | None
    advantages: Advantages
    recorder: Recorder
    microbatches: Microbatches
    loss: Loss
    checkpoint: Checkpoint
    held_out: HeldOut
    engine_check: EngineCheck | None
    watch: Watch | None

    def begin_training(self) -> None:
        """Forget what a training that ended in an exception left half done."""
        self.phases.begin_training()
        self.loss.begin_training()
        self.provenance.begin_training()
        self.lag.clear()
        self.checkpoint.counts[ROLLOUT_BATCHES] = 0
        if self.common_noise is not None:
            self.common_noise.start_evaluation()
        if self.row_keys is not None:
            self.row_keys.start_over()
        if self.watch is not None:
            self.watch.faults.begin_training()


def wired(
    trainer: Any,
    speed: Speed,
    cut: Literal["by_rank", "over_all_ranks"],
    engine: Engine | None,
    evaluation: Evaluation,
    guards: Guards | None,
    *,
    drop_in: bool,
) -> Parts:
    """The parts of ``trainer``, whose TRL side is set up.

    Raises:
        PreflightError: the loaded model, data or reward functions do not go with the settings.
    """
    args, strategies, accelerator, tokenizer = trainer.args, trainer.strategies, trainer.accelerator, trainer._tokenizer
    ranks = Ranks(accelerator, sharded=parameters_are_sharded(trainer))
    settings = Settings(
        args, strategies, speed, cut, bool(evaluation.decodings), drop_in, loaded=_loaded(trainer, speed, ranks)
    )
    refuse(settings, "environments", "model")
    schedule, phases = Schedule.of(args, strategies.schedule.num_passes), Phases()
    asks_for_old = settings.corrects_engine or not schedule.is_on_policy
    lags = speed.staleness > 0
    choices = {name: _is_taken(settings, ranks, option) for name, option in SWITCHES.items()}
    skips_old = choices["skipping"]
    reward_weights, group_size = trainer.reward_weights, args.num_generations
    ends = frozenset({*trainer.eos_token_ids, tokenizer.pad_token_id})
    checkpoint = Checkpoint(strategies.all, ranks)
    microbatches = Microbatches(
        args,
        strategies,
        schedule,
        ranks,
        planner=PlannedCut(
            args,
            strategies,
            ranks,
            tokens_per_microbatch=speed.tokens_per_microbatch,
            cuts_passes=cuts_passes(settings),
            trims_prompts=settings.loaded.rope_type is not None,  # rotary positions are relative
            attention_length=attention_length(trainer.model.config.get_text_config()) if choices["sharing"] else None,
        )
        if choices["planned"]
        else None,
        over_all_ranks=cut == "over_all_ranks",
        verify_steps=speed.verify_steps,
        counts=checkpoint.counts,
    )
    return Parts(
        ranks=ranks,
        schedule=schedule,
        phases=phases,
        lag=Lag(speed.staleness, schedule, ranks, overlaps=choices["overlap"]),
        prompts=Prompts(
            strategies.prompt_sampler,
            trainer.train_dataset,
            ranks,
            group_size=group_size,
            seed=args.seed,
            reward_weights=reward_weights,
            ends=ends,
        ),
        is_compact=choices["compact"],
        choices=choices,
        common_noise=CommonRandomNumbers(args.seed, ranks) if speed.common_random_numbers else None,
        row_keys=SampleKeys(args.seed, ranks)
        if any(getattr(function, "wants_row_keys", False) for function in trainer.reward_funcs)
        else None,
        provenance=Provenance(
            args,
            ranks,
            tokenizer,
            ends=ends if args.mask_truncated_completions else None,
            batches=BATCHES if trainer.tools and trainer.rollout_func is None else 0,
            bound=None if settings.loaded.varies or trainer._is_vlm else ROUNDING[compute_dtype(args, trainer.model)],
        ),
        judging=Judging(trainer.reward_func_names, reward_weights, ranks),
        scoring=Scoring(
            args,
            strategies,
            ranks,
            microbatches,
            phases,
            asks_for_old=asks_for_old,
            has_reference=args.beta != 0.0,
            skips_old=skips_old or (lags and args.use_vllm),
            keeps_entropies=asks_for_old and not skips_old and strategies.ask_for("entropies"),
            lags=lags,
            by_engine=lags and args.use_vllm,
        ),
        teacher=None
        if strategies.teacher is None
        else Teacher(
            strategies.teacher,
            ranks,
            asked=strategies.taught,
            group_size=group_size,
            padding=tokenizer.pad_token_id,
            longest=getattr(trainer.model.config.get_text_config(), "max_position_embeddings", None),
            decode=partial(trainer.processing_class.batch_decode, skip_special_tokens=True),
        ),
        revisions=None
        if strategies.revision is None
        else Revisions(
            strategies.revision,
            ranks,
            group_size=group_size,
            decode=partial(trainer.processing_class.batch_decode, skip_special_tokens=True),
        ),
        advantages=Advantages(
            args,
            strategies,
            ranks,
            reward_weights,
            tokenizer.pad_token_id,
            ratio_comes_later=skips_old,
            turn_columns=settings.loaded.turn_columns or frozenset(),
        ),
        recorder=Recorder(
            ranks, tokenizer, trainer.reward_func_names, reward_weights, group_size=group_size, ends=ends
        ),
        microbatches=microbatches,
        loss=Loss(
            args,
            strategies,
            schedule,
            ranks,
            epsilon_high=trainer.epsilon_high,
            makes_ratio=skips_old,
            lags=lags,
            by_engine=lags and args.use_vllm,
            token_classes=None
            if guards is None
            else TokenClassMeter(tokenizer, trainer.model.get_input_embeddings().num_embeddings, ranks.device),
        ),
        checkpoint=checkpoint,
        held_out=HeldOut(
            evaluation,
            ranks,
            dict(zip(trainer.reward_func_names, trainer.reward_funcs, strict=True)),
            reward_weights.tolist(),
            temperature=trainer.temperature,
            batch_size=args.per_device_eval_batch_size,
            ends=ends,
        ),
        engine_check=EngineCheck(
            ranks,
            tokenizer,
            bound=engine.agreement_bound,
            dtype=compute_dtype(args, trainer.model),
            temperature=trainer.temperature,
        )
        if engine is not None and trainer.use_vllm
        else None,
        watch=None
        if guards is None
        else Watch(
            FaultGuard(
                guards,
                ranks,
                checkpoint.counts,
                norm_is_scaled=getattr(accelerator, "scaler", None) is not None,
                step_is_made=trainer.is_deepspeed_enabled,
            ),
            DiskGuard(ranks, guards.report, saves_together=trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled),
        ),
    )


def _loaded(trainer: Any, speed: Speed, ranks: Ranks) -> Loaded:
    model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
    config = trainer.model.config.get_text_config()
    own = [name for name in ("rollout_func", "tools", "environment_factories") if getattr(trainer, name, None)]
    environments = [*(getattr(trainer, "environment_factories", None) or {}).values()]
    turn_columns = [kind.turn_columns for kind in environments if hasattr(kind, "turn_columns")]  # of a run file's
    columns = getattr(trainer.train_dataset, "column_names", None) or ()
    varies = None
    if any(drops(module) for module in trainer.model.modules()):
        varies = "the model has dropout, of which each pass draws its own"
    elif getattr(config, "router_jitter_noise", 0.0):
        varies = "the router of the model's experts is noisy (router_jitter_noise)"
    reads_cache = speed.generation != "trl" or speed.shared_prompts is not False
    has_plain_cache = not reads_cache or preallocated_cache(model.config) is not None
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # without adapters
    return Loaded(
        own_generation=own[0] if own else None,
        has_router_loss=bool(trainer.aux_loss_enabled),
        is_vlm=trainer._is_vlm,
        rope_type=rope_type(config),
        varies=varies,
        has_plain_cache=has_plain_cache,
        unusable_references=unusable_references(trainer.train_dataset)
        if trainer.strategies.ask_for("teacher_logps")
        else None,
        unshareable=unshareable(
            base, has_plain_cache=has_plain_cache, has_rotary_positions=rope_type(config) is not None
        )
        if speed.shared_prompts is not False
        else None,
        is_sharded=ranks.sharded,
        has_positions=hasattr(trainer.train_dataset, "__len__"),
        same_names=tuple(name for name, count in Counter(trainer.reward_func_names).items() if count > 1),
        turn_columns=frozenset[str]().union(*turn_columns)
        if environments and len(turn_columns) == len(environments)
        else None,
        image_column=next((name for name in ("image", "images") if name in columns), None),
        special_functions=tuple(
            name
            for name, function in zip(trainer.reward_func_names, trainer.reward_funcs, strict=True)
            if not is_plain(function)
        ),
    )


_INSTEAD: dict[Option, str] = {
    "microbatches": "Micro-batches stay as TRL cuts them",
    "shared_prompts": "Each row computes its own prompt",
    "skip_old_logps": "π_old is scored in a pass of its own",
    "generation": "Completions are generated as TRL does",
    "overlap_generation": "Nothing is generated during training",
}


def _is_taken(settings: Settings, ranks: Ranks, option: Option) -> bool:
    """Whether the option of `Speed` is taken; where one is asked for and a rule gives it up, its reasons are a warning.

    ``None`` of the option = where possible, and nothing is said where not.
    """
    speed, asked = settings.speed, getattr(settings.speed, option)
    wanted = asked not in (False, "trl")
    if option == "skip_old_logps":
        wanted = wanted and settings.corrects_engine and settings.is_on_policy
        wanted = wanted and (asked is True or speed.microbatches == "planned")
    problems = problems_of(settings, option) if wanted else []
    if problems and asked is not None:
        ranks.warn(f"{_INSTEAD[option]}: {'; '.join(problems)}.")
    return wanted and not problems
