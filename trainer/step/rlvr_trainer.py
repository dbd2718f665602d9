"""`RLVRTrainer`: TRL's `GRPOTrainer` with pluggable advantages, token weights, coefficients and update schedules.

The hooks between TRL's seams and the pure functions, and nothing else: no body of TRL is copied. What they rely on is
pinned by tests/trainer/step/test_trl_contract.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor
from torch.utils.data import Sampler
from trl import GRPOConfig

from rewards.verifier import LARGEST_SCORE
from trainer.algorithms.registry import PartSpec
from trainer.algorithms.results import checked_advantages
from trainer.algorithms.revisions.options import RevisionOptions
from trainer.algorithms.strategies import KeepGroups, build_strategies
from trainer.step.compatibility import PreflightError, check_combination, check_cut, leaves_advantages_to_trl
from trainer.step.deferred_checks import DeferredChecks
from trainer.step.epoch_sampler import EpochSampler
from trainer.step.group_labels import group_labels
from trainer.step.microbatches import microbatches_over_all_ranks, whole_group_microbatches
from trainer.step.observers import (
    Means,
    SharedPrefixMeter,
    add_drift,
    metrics_over_all_passes,
    over_all_microbatches,
    per_response,
    rollout_metrics,
)
from trainer.step.part_state import agreed_states, load_state, write_states
from trainer.step.revisions import Revisions
from trainer.step.rollout_batches import rollout_number
from trainer.step.rollout_signals import check_columns, kept_tokens, loss_mask, rollout_signals
from trainer.step.signals import Signals
from trainer.step.timing import TimedTrainer
from trainer.step.token_advantages import token_advantages


class RLVRTrainer(TimedTrainer):
    """A drop-in for `trl.GRPOTrainer` whose advantages, token weights, coefficients and update schedule are parts.

    All arguments of `GRPOTrainer`, and by keyword:

    Args:
        advantage: rewards → advantages. A name, ``package.module:attribute``, ``{name: …, option: …}`` or a function;
            ``None`` = ``grpo``, or TRL's own advantages where ``args`` sets ``scale_rewards`` or
            ``multi_objective_aggregation``.
        token_weight: the same for token weights (uniform, adv_reweight, …).
        coefficient: the same for what multiplies ``A ∇log π`` in place of the clipped ratio; needs loss_type cispo.
        update_schedule: the same for update schedules (single_pass, lopti).
        keep_groups: ``step`` or ``forward`` keeps the responses to one prompt in one optimizer step or forward pass,
            ``off`` shuffles rows as TRL does; ``None`` = what the strategies need.
        prompt_sampler: the same for which prompts come next (uniform = TRL's order, dynamic, difficulty, unsolved).
        cut: ``by_rank``: each rank cuts its rows into optimizer steps, as TRL does; ``over_all_ranks``: the same rows
            are in each step on any number of ranks.
        revision: how wrong answers are generated again, where an estimator asks for it (ibpo); see `RevisionOptions`.
        microbatches, tokens_per_microbatch, verify_steps; evaluation_seed, decodings; generation; and
            common_random_numbers: see `PlanningTrainer`, `EvaluatingTrainer`, `GeneratingTrainer`,
            `CommonRandomNumbersTrainer`; without them all these are TRL's.
        skip_old_logps; check_agreement_every, agreement_bound: with vLLM; see `OnPolicyTrainer`, `AgreeingTrainer`.

    With the defaults its final weights equal `GRPOTrainer`'s bit for bit, except that groups with equal rewards get
    exactly zero advantage where TRL's float noise is scaled up.

    Raises:
        PartError: a strategy that cannot be built, or whose result breaks its contract on some batch.
        PreflightError: strategies and TRL settings that do not go together.
        ValueError: a reward is infinite, or too large to be summed.
    """

    _current: dict[str, Any] | None = None  # the micro-batch inside the loss
    _keeps_entropies = False

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: GRPOConfig | None = None,
        *positional: Any,
        advantage: PartSpec | None = None,
        token_weight: PartSpec = "uniform",
        coefficient: PartSpec | None = None,
        update_schedule: PartSpec = "single_pass",
        keep_groups: KeepGroups | None = None,
        revision: Mapping[str, Any] | RevisionOptions | None = None,
        prompt_sampler: PartSpec = "uniform",
        cut: Literal["by_rank", "over_all_ranks"] = "by_rank",
        **keywords: Any,
    ) -> None:
        asked = (advantage, token_weight, coefficient, update_schedule, keep_groups)
        drop_in = asked == (None, "uniform", None, "single_pass", None)
        if advantage is None and not (args is not None and leaves_advantages_to_trl(args)):
            advantage = "grpo"
        self.strategies = build_strategies(
            advantage, token_weight, update_schedule, coefficient, keep_groups, revision, prompt_sampler
        )
        if args is not None:
            check_combination(args, self.strategies, drop_in=drop_in)
        self._means, self._shared_prefixes, self._checks = Means(), SharedPrefixMeter(), DeferredChecks()
        self._rewards_per_function: Tensor | None = None
        self._columns: dict[str, list[Any]] = {}  # what reward functions logged of the rollout batch
        self._rollout: dict[str, Any] | None = None  # a rollout batch that has not been cut yet
        self._old_entropies: Tensor | None = None
        super().__init__(model, reward_funcs, args, *positional, **keywords)
        if args is None:
            check_combination(self.args, self.strategies, drop_in=drop_in)
        num_passes = self.strategies.schedule.num_passes
        if num_passes > 1 and self.aux_loss_enabled:
            raise PreflightError(
                f"update_schedule {self.strategies.update_schedule.name!r} with a Mixture-of-Experts model: its "
                f"load-balancing loss would be applied {num_passes} times to each batch. Set router_aux_loss_coef: 0.0."
            )
        self.num_iterations *= num_passes
        self._cuts_over_all_ranks = cut == "over_all_ranks"
        if self._cuts_over_all_ranks:
            check_cut(self.args, self.strategies.keep_groups)
        options = self.strategies.revision
        self._revisions = None if options is None else Revisions(options, self, super()._calculate_rewards)

    # From a rollout batch to advantages

    def _get_train_sampler(self, dataset: Any = None) -> Sampler[int]:
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> Tensor:
        rewards_per_function: Tensor = super()._calculate_rewards(*positional, **keywords)
        infinite = rewards_per_function.isinf()
        if infinite.any():
            names = [name for name, bad in zip(self.reward_func_names, infinite.any(0).tolist(), strict=True) if bad]
            raise ValueError(
                f"The reward of {', '.join(names)} is infinite for {int(infinite.any(1).sum())} of "
                f"{len(rewards_per_function)} completions; one of them would make every advantage of its group "
                "meaningless. Return a finite number, or None where no judgement is possible."
            )
        weighted = rewards_per_function * self.reward_weights.to(rewards_per_function.device)
        too_large = (rewards_per_function.abs() > LARGEST_SCORE) | (weighted.abs() > LARGEST_SCORE)
        if too_large.any():
            columns = zip(self.reward_func_names, rewards_per_function.T, too_large.T, strict=True)
            names = [f"{name} ({values[bad][0].item():g})" for name, values, bad in columns if bad.any()]
            raise ValueError(
                f"The reward of {', '.join(names)} is beyond ±{LARGEST_SCORE:g}, by itself or with its weight, for "
                f"{int(too_large.any(1).sum())} of {len(rewards_per_function)} completions; sums of squares of such "
                "numbers are none in float32, and every advantage would be 0. Return a smaller number, as only "
                "differences within a group count, or give it a smaller weight."
            )
        if self.model.training:
            rows = len(rewards_per_function) // self.accelerator.num_processes
            logged = self._pending_extra_logs.items()  # TRL clears them before advantages are estimated
            self._columns = {name: values[-rows:] for name, values in logged if len(values) >= rows}
            self._rewards_per_function = rewards_per_function
        return rewards_per_function

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        self._keeps_entropies = self._stores_old_logps and self.strategies.ask_for("entropies")
        inputs = self._rows_to_roll_out(inputs)
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self._keeps_entropies = False
        if self._old_entropies is not None:
            batch["old_entropies"], self._old_entropies = self._old_entropies, None
        assert self._rewards_per_function is not None
        signals = rollout_signals(self, batch, self._rewards_per_function, self._columns)
        self._tell_sampler(signals)
        if self._revisions is not None:
            signals.add(**self._revisions(inputs, batch, signals["correct"]))
        self._set_advantages(batch, signals)
        self._label_groups(batch, signals)
        batch.pop("scores", None)
        self._rollout = batch
        return batch

    def _set_advantages(self, batch: dict[str, Any], signals: Signals) -> None:
        """Replace TRL's advantages by the estimator's, this rank's (B,) or (B, T), also in TRL's table."""
        rewards, mask, estimator = signals["rewards"], signals["mask"], self.strategies.advantage
        if estimator is None:
            advantages: Tensor = self.accelerator.gather(batch["advantages"])
        else:
            check_columns(self, estimator, signals)
            where, shape = f"at optimizer step {self.state.global_step}", (self.num_generations, mask.shape[1])
            advantages = checked_advantages(estimator, estimator(signals), rewards, *shape, where).nan_to_num(nan=0.0)
            batch["advantages"] = self._local(advantages, batch)
            logged, trained = self._logs["advantages"], per_response(advantages, mask).tolist()
            for _ in range(min(len(trained), len(logged))):
                logged.pop()
            logged.extend(trained)
        for name, value in rollout_metrics(rewards, advantages, signals).items():
            self._metrics["train"][name].append(value)

    def _label_groups(self, batch: dict[str, Any], signals: Signals) -> None:
        """Give each row its `group_labels`."""
        numbers = self.args.seed, rollout_number(self)
        labels = group_labels(signals, self.strategies.advantage, outcomes=self.beta != 0.0, numbers=numbers)
        batch |= {name: self._local(values, batch) for name, values in labels.items()}
        prefixes = labels["shared_prefix"]
        self._shared_prefixes.expect(len(prefixes) // self.num_generations, int(prefixes.max()), prefixes.device)

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        inputs: dict[str, Any] = super()._prepare_inputs(generation_batch)
        rollout, self._rollout = self._rollout, None
        steps = self.args.steps_per_generation
        if rollout is not None and self._cuts_over_all_ranks:
            unit = 1 if self.strategies.keep_groups == "off" else self.num_generations
            updates = steps // self.args.gradient_accumulation_steps
            seed, rank = self.args.seed * 1_000_003 + rollout_number(self), self.accelerator.process_index
            self._buffered_inputs = microbatches_over_all_ranks(rollout, unit, updates, steps, seed, rank)
            inputs = self._buffered_inputs[self._step % steps]
        elif rollout is not None and self.strategies.keep_groups != "off":
            self._buffered_inputs = whole_group_microbatches(rollout, self.num_generations, steps)
            inputs = self._buffered_inputs[self._step % steps]
        return self._microbatch_to_train(inputs)

    # Inside the loss

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if not self.model.training:
            return super()._compute_loss(model, inputs)
        batch = dict(inputs)  # the buffered batch serves later passes too
        if self.strategies.schedule.num_passes > 1:
            self._select_pass(batch)
        self._current = batch
        try:
            loss = super()._compute_loss(model, batch)
        finally:
            self._current = None
        if self.accelerator.sync_gradients:  # before the backward pass, in which DeepSpeed makes the optimizer's step
            self._checks.raise_first()
        if self.strategies.coefficient is not None:
            self._metrics["train"].pop("cispo_clip_ratio", None)  # of a cap that has been undone
        if "keep" in batch and self.beta != 0.0:
            corrected = self.args.use_bias_correction_kl
            metrics_over_all_passes(self._metrics["train"], self._means, batch, bias_corrected_kl=corrected)
        if self.planner is None:
            return loss
        by_sequence = self.importance_sampling_level == "sequence" and batch["advantages"].dim() == 1
        over_all_microbatches(
            self._metrics["train"],
            self._means,
            batch,
            by_sequence=by_sequence,
            ends_step=self.accelerator.sync_gradients,
        )
        return loss * batch.get("loss_scale", 1.0)

    def _select_pass(self, batch: dict[str, Any]) -> None:
        """Note in ``batch`` which of its tokens the current pass trains."""
        mask, pass_index = loss_mask(batch), self._pass_index
        if (keep := batch.get("keep")) is None:
            keep = kept_tokens(self.strategies.schedule, batch, pass_index)
        kept, tokens = batch.get("pass_tokens", (keep.sum(), mask.sum()))
        self._means.add(f"update_schedule/frac_tokens_pass_{pass_index + 1}", kept, tokens)
        batch |= {"keep": keep, "all_passes_mask": mask}
        if self.beta != 0.0:  # the KL term too acts on this pass's tokens alone; preflight admits only exact losses
            batch["tool_mask"] = keep.to(mask.dtype)

    def _get_per_token_logps_and_entropies(self, model: Any, *positional: Any, **keywords: Any) -> Any:
        if self._keeps_entropies:  # TRL scores π_old first, then the reference
            self._keeps_entropies = False
            result = super()._get_per_token_logps_and_entropies(
                model, *positional, **{**keywords, "compute_entropy": True}
            )
            self._old_entropies = result[1]
            return result
        result = super()._get_per_token_logps_and_entropies(model, *positional, **keywords)
        if (batch := self._current) is not None:  # TRL reads the batch's advantages after this
            batch |= {"logps": result[0].detach(), "entropies": None if result[1] is None else result[1].detach()}
            mask = batch.get("all_passes_mask", loss_mask(batch))
            batch["advantages"] = token_advantages(
                self.strategies,
                batch,
                batch["logps"],
                batch["entropies"],
                mask,
                keep=batch.get("keep"),
                epsilon_high=self.epsilon_high,
                step=self.state.global_step,
                max_steps=self.state.max_steps,
                means=self._means,
                suspect=self._checks,
            )
            add_drift(self._means, batch, mask, is_updated=self._is_updated)
            if (scale := batch.get("row_scale")) is not None:
                batch["advantages"] = batch["advantages"] * scale.view(-1, *[1] * (batch["advantages"].dim() - 1))
            self._shared_prefixes.watch(result[0], batch["groups"], batch["shared_prefix"])
        return result

    def training_step(self, *positional: Any, **keywords: Any) -> Tensor:
        loss: Tensor = super().training_step(*positional, **keywords)
        if self.accelerator.sync_gradients:
            self._shared_prefixes.finish_step(self.accelerator, self._means)
        return loss

    # Metrics, evaluation, checkpoints

    def log(self, logs: dict[str, float], *positional: Any, **keywords: Any) -> None:
        with self.clock.phase("log"):
            if self.model.training:
                for name, value in self._means.read(self.accelerator).items():
                    self._metrics["train"][name].append(value)
            super().log(logs, *positional, **keywords)

    def prediction_step(self, model: Any, inputs: Any, *positional: Any, **keywords: Any) -> Any:
        if self.decodings or self.strategies.are_trls_own:
            return super().prediction_step(model, inputs, *positional, **keywords)
        self._prepare_inputs(inputs)  # answered and judged; a loss made of TRL's advantages is not what is trained
        return None, None, None

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        states = agreed_states(self.strategies.all)  # of all ranks, before a full disk may take one of them elsewhere
        super()._save_checkpoint(model, trial)
        folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
        if self.accelerator.is_main_process:
            write_states(states, folder)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            load_state(self.strategies.all, Path(checkpoint))

    def _local(self, values: Tensor, batch: dict[str, Any]) -> Tensor:
        """This rank's rows of (N, …), cut to its own longest completion."""
        rows, tokens = batch["completion_ids"].shape
        start = self.accelerator.process_index * rows
        local = values[start : start + rows]
        return local[:, :tokens] if local.dim() == 2 else local
