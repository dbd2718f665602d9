"""`RLVRTrainer`: TRL's `GRPOTrainer` with pluggable strategies. This file is the map of a training step.

Each override of a TRL method is here once, in the order in which a step reaches it, and calls one or two of the `Parts`
at the end of this file; README.md in this folder shows the same order as a tree. No body of TRL is copied: what the
overrides rely on is pinned by tests/trainer/step/test_trl_contract.py.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from transformers import GenerationConfig, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from evenkeel.rewards.registry import PartSpec
from evenkeel.trainer.algorithms.revisions import RevisionOptions
from evenkeel.trainer.algorithms.strategies import KeepGroups, Strategies, build_strategies
from evenkeel.trainer.algorithms.teachers import TeacherOptions
from evenkeel.trainer.evaluation.decoding import Decoding
from evenkeel.trainer.evaluation.judging import Answered, logged_columns
from evenkeel.trainer.step import check_methods, checkpoint, choices, compatibility, generation
from evenkeel.trainer.step.advantages import Advantages, Rewards
from evenkeel.trainer.step.checkpoint import ROLLOUT_BATCHES, Checkpoint, LogState, optimizer_settings, set_optimizer
from evenkeel.trainer.step.evaluation import HeldOut
from evenkeel.trainer.step.guards import SKIPPED, FaultGuard, memory_errors_explained
from evenkeel.trainer.step.loss import Loss
from evenkeel.trainer.step.metrics import Throughput, written_tokens
from evenkeel.trainer.step.microbatches import Microbatches, both_gradients
from evenkeel.trainer.step.options import Engine, Evaluation, Guards, Speed
from evenkeel.trainer.step.other_prompts import Revisions, Teacher
from evenkeel.trainer.step.packing import unshareable
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.prompts import Generations, Prompts
from evenkeel.trainer.step.provenance import EngineCheck, Provenance, compute_dtype
from evenkeel.trainer.step.records import Recorder
from evenkeel.trainer.step.rollout import EpochSampler, Lag, PendingRollout, Request, Rollout, RolloutBatch, RunOrder
from evenkeel.trainer.step.scoring import Scoring
from evenkeel.trainer.step.setup import Batch, Position, Ranks, Row, Setup, random_streams_kept, temporarily

check_methods(GRPOTrainer)
_NOTHING_ASKED = (None, "uniform", None, "single_pass", None)
"""Defaults of advantage, token_weight, coefficient, update_schedule and keep_groups."""


class RLVRTrainer(GRPOTrainer):
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
        revision: how wrong answers are generated again, where an estimator asks for it (ibpo); see `RevisionOptions`.
        prompt_sampler: chooses the next prompts, given like ``advantage`` (uniform = TRL's order, dynamic, …).
        teacher: the prompts under which completions get log-probabilities once more, where a strategy names
            ``teacher_logps`` (rlsd, sdpo) or ``teacher_contrast`` (rlcsd); see `TeacherOptions`.
        strategies: all of the above as built by `build_strategies`, instead of them.
        cut: ``by_rank``: each rank cuts its rows into optimizer steps, as TRL does; ``over_all_ranks``: each step holds
            the same rows on any number of ranks, where each rank's rows divide evenly over the steps.
        speed: faster ways to the same update: `trainer.step.options.Speed`; the default is TRL's own way.
        engine: vLLM's policy is compared with the trained one after each weight sync: `Engine`; ``None`` = it is not.
        evaluation: how held-out rows are answered: `Evaluation`.
        guards: what to do about non-finite losses and exhausted memory: `Guards`; ``None`` = what TRL does.

    With the defaults its final weights equal `GRPOTrainer`'s bit for bit, except that groups with equal rewards get
    exactly zero advantage where TRL's float noise is scaled up.

    Raises:
        PartError: a strategy that cannot be built, or whose result breaks its contract on some batch.
        Refusal: strategies and settings that do not go together.
        ValueError: a reward is infinite, or too large to be summed.
    """

    parts: "Parts"
    _ends_with_generation = False
    control: Any
    generation_kwargs: dict[str, Any]
    _buffered_inputs: Any
    _last_loaded_step: int
    _pending_extra_logs: Any
    _tr_loss: Tensor

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
        teacher: Mapping[str, Any] | TeacherOptions | None = None,
        strategies: Strategies | None = None,
        cut: Literal["by_rank", "over_all_ranks"] = "by_rank",
        speed: Speed = Speed(),
        engine: Engine | None = None,
        evaluation: Evaluation = Evaluation(),
        guards: Guards | None = None,
        **keywords: Any,
    ) -> None:
        asked = (advantage, token_weight, coefficient, update_schedule, keep_groups)
        drop_in = strategies is None and asked == _NOTHING_ASKED
        if strategies is None:
            if advantage is None and not (args is not None and compatibility.leaves_advantages_to_trl(args)):
                advantage = "grpo"
            strategies = build_strategies(
                advantage, token_weight, update_schedule, coefficient, keep_groups, revision, prompt_sampler, teacher
            )
        elif (*asked, revision, prompt_sampler, teacher) != (*_NOTHING_ASKED, None, "uniform", None):
            raise TypeError("strategies= holds every strategy: give the others to build_strategies.")
        self.strategies = strategies
        super().__init__(model, reward_funcs, args, *positional, **keywords)
        compatibility.check_combination(self.args, self.strategies, speed, drop_in=drop_in)
        if speed.staleness:
            self.vllm_importance_sampling_correction = False  # π_old are vLLM's own: nothing to correct
        self.num_iterations *= strategies.schedule.num_passes  # TRL trains a rollout batch pass by pass
        setup = setup_of(self, speed, cut, decodes=bool(evaluation.decodings), drop_in=drop_in)
        self.parts = Parts(setup, self, engine, evaluation, guards)
        self.add_callback(EndOfStep(self.parts, self._metrics))
        if guards is not None:
            self.args.logging_nan_inf_filter = False  # the guard handles non-finite losses
        if self.use_vllm:
            self.vllm_generation.sync_weights = partial(self._sync_weights, self.vllm_generation.sync_weights)

    @property
    def _position(self) -> Position:
        """Position in the run; while a rollout batch is generated ahead of training, ``rollout`` is its number."""
        rollouts = self.parts.checkpoint.counts[ROLLOUT_BATCHES] + self.parts.lag.ahead
        return Position(self.state.global_step, self.state.max_steps, self._step, rollouts)

    # 1. Training, and one micro-batch of it

    def train(self, *positional: Any, **keywords: Any) -> Any:
        parts = self.parts
        parts.begin_training()
        explained = memory_errors_explained(parts.ranks, parts.phases, lambda: self._position)
        with nullcontext() if parts.faults is None else explained:
            return super().train(*positional, **keywords)

    def _get_train_sampler(self, dataset: Any = None) -> Sampler[int]:
        if self.parts.lag.staleness:
            self.parts.lag.order = RunOrder(dataset, super()._get_train_sampler(dataset), self.parts.ranks)
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))

    def training_step(self, *positional: Any, **keywords: Any) -> Tensor:
        phases, faults = self.parts.phases, self.parts.faults
        if (logged := self.parts.checkpoint.take_log_state()) is not None and faults is not None:
            self._restore_log_state(logged)  # without guards a resumed log starts empty, as TRL's does
        phases.microbatch_starts()
        with phases("update"):
            loss: Tensor = super().training_step(*positional, **keywords)
            loss = loss if faults is None else faults.logged_loss(loss)
        if self._step % self.parts.schedule.microbatches_per_rollout == 0:
            self.parts.checkpoint.counts[ROLLOUT_BATCHES] += 1
        phases.microbatch_ended()
        if self.accelerator.sync_gradients:
            self.parts.provenance.finish_step()
            self.parts.loss.shared_prefixes.finish_step(self.accelerator, self.parts.loss.means)
        return loss

    # 2. Its rows, from `microbatches` in place of TRL's result; a new rollout batch where the last one is used up

    def _prepare_inputs(self, generation_batch: Any) -> dict[str, Any]:
        with self.parts.phases("prepare"):
            inputs: dict[str, Any] = super()._prepare_inputs(generation_batch)
        if not self.model.training:
            return inputs
        microbatches = self.parts.microbatches
        self._buffered_inputs = microbatches.regrouped(self._buffered_inputs, self._position)
        return microbatches.next_microbatch(self._buffered_inputs, self._position, self._both_gradients)

    def _both_gradients(self, first: Sequence[Batch], second: Sequence[Batch]) -> tuple[Tensor, Tensor, float]:
        """The gradients of two cuts of the same rows; see `both_gradients`."""

        def loss_of(batch: Batch) -> Tensor:
            with self.compute_loss_context_manager():
                return self._compute_loss(self.model, batch)

        with self.parts.loss.apart():
            return both_gradients(loss_of, self, first, second)

    # 3. A rollout batch: prompts, completions, π_old and reference, rewards, advantages

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        parts = self.parts
        if parts.lag.staleness or parts.lag.holds(self._position):  # a queue resumed with staleness 0
            rollout = self._from_queue()
        else:
            rollout = self._rollout(self._rows(inputs))
        parts.loss.start_rollout(rollout.batch, rollout.shared_prefixes, rollout.step)
        parts.provenance.start_rollout(rollout.batch, rollout.step)
        parts.microbatches.keep(rollout.batch)
        return rollout.batch

    def _rows(self, given: list[Row]) -> list[Row]:
        """``given``, or the rows that a sampler chooses in their place."""
        prompts, keys = self.parts.prompts, self.parts.row_keys
        with generation.engine_kept_awake(self) if prompts.has_rounds else nullcontext():
            rows = prompts.rows(given, self._position, self._generate_and_reward, self._metrics["train"])
        return rows if keys is None else keys.added_to(rows, self._position.rollout)

    def _generate_and_reward(self, rows: list[Row]) -> Generations:
        """Completions of a prompt sampler's candidate rows, with their rewards."""
        if (keys := self.parts.row_keys) is not None:
            rows = keys.added_to(rows, self._position.rollout)
        prompts, generated = self._generated_alone(rows)
        rewards = self._calculate_rewards(rows, prompts, generated[3], generated[1])
        columns = logged_columns(self._pending_extra_logs, len(rows))
        self._pending_extra_logs = defaultdict(list)
        return Generations(prompts, generated, rewards, columns)

    def _generated_alone(self, rows: list[Any]) -> tuple[list[Any], Any]:
        """The prompts of rows, and the result of TRL's ``_generate`` for them.

        TRL resets environments and binds tools in its rollout, which ends here where it has generated: no
        log-probabilities and no advantages are computed.
        """
        if not self.tools and not getattr(self, "environment_factories", None):
            prompts = [row["prompt"] for row in rows]
            return prompts, self._generate(prompts)
        try:
            with temporarily(self, {"_ends_with_generation": True}):
                super()._generate_and_score_completions(rows)
        except _Generated as made:
            return made.prompts, made.generated
        raise RuntimeError("TRL's rollout ended without a call of _generate.")

    def _rollout(self, rows: list[Row]) -> RolloutBatch:
        """Generate a rollout batch of these rows with the current policy, and compute its advantages."""
        parts, position, metrics = self.parts, self._position, self._metrics["train"]
        score, seed = super()._get_per_token_logps_and_entropies, position.seed(self.args.seed)
        old_policy = partial(parts.scoring.old_policy, score, self.model)
        has_environments = self.environments is not None or getattr(self, "environment_factories", None)
        unused = {"environments": None, "environment_factories": None}  # kept completions need no environment
        with (
            parts.prompts.serving_kept_rollout() as is_kept,
            temporarily(self, unused if is_kept and has_environments else {}),
            parts.scoring.rollout(),
        ):
            batch: Batch = super()._generate_and_score_completions(rows)
        parts.provenance.check(self, batch, metrics)
        parts.scoring.complete(batch, metrics, old_policy)
        methods = self._tokenize_prompts, partial(parts.scoring.completions, score, self.model)
        if parts.teacher is not None:
            batch |= parts.teacher.gold_answers(rows, batch, *methods)
        rewards = parts.rewards  # what `_calculate_rewards` has kept meanwhile
        rollout = Rollout(rows, batch, position, rewards.per_function, rewards.columns, old_policy)
        signals = parts.advantages.signals(rollout)
        parts.prompts.observe(lambda: signals["correct"])
        if parts.teacher is not None:
            batch |= parts.teacher.siblings(rows, batch, lambda: signals["correct"], seed, *methods)
        if parts.revisions is not None:
            write = partial(self._write_revisions, seed)
            signals.add(**parts.revisions(rollout, signals["correct"], seed, write, metrics))
        for name, value in parts.advantages.write_advantages(rollout, signals, self._logs).items():
            metrics[name].append(value)
        shared_prefixes = parts.advantages.write_row_data(rollout, signals)
        parts.recorder(rollout)
        return RolloutBatch(batch, shared_prefixes, position.step)

    def _write_revisions(
        self, seed: int, rows: list[Row], prompts: list[Any]
    ) -> tuple[list[list[int]], Mapping[str, list[Any]]]:
        """Generate one completion of each prompt, in batches of the rollout's size, with the rewards of its row.

        Metrics and columns do not mix with the rollout's; ``num_tokens``, TRL's count of all tokens, continues.
        """
        size = self.args.per_device_train_batch_size * self.args.steps_per_generation
        ranks = self.parts.ranks
        logged: dict[str, list[Any]] = defaultdict(list)
        apart = {
            "num_generations": 1,
            "_metrics": {mode: defaultdict(list) for mode in self._metrics},
            "_pending_extra_logs": logged,
            "_pending_metrics": defaultdict(list),
        }
        token_ids: list[list[int]] = []
        completions: list[Any] = []
        with generation.engine_kept_awake(self), temporarily(self, apart), random_streams_kept(self.accelerator.device):
            torch.manual_seed(seed * ranks.count + ranks.index)
            for first in range(0, len(prompts), size):
                _, ids, _, answers, *_ = self._generate(prompts[first : first + size])
                token_ids += ids
                completions += answers
            with self.parts.phases("verify_wait"):  # TRL's method: the override would keep them as the rollout's
                super()._calculate_rewards(rows, [row["prompt"] for row in rows], completions, token_ids)
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        return token_ids, logged_columns(logged, len(rows))

    # with staleness: rollout batches are generated ahead of training

    def _from_queue(self) -> RolloutBatch:
        """The next batch to train, of `lag.order`'s rows; first generates, or requests from the server, those due."""
        lag, now = self.parts.lag, self._position
        self._finish_pending()
        for number in lag.due(now):
            self._finish_pending()
            with lag.generating(number, now, self._metrics) as metrics:
                rows = self._rows(lag.order.rows(number))
                if lag.overlaps:
                    lag.pending = self._requested(rows, number, now.rollout, metrics)
                else:
                    lag.put(self._rollout(rows), number, now.rollout, metrics)
        if not lag.holds(now):
            self._finish_pending()
        return lag.take(now, self._metrics["train"])

    def _requested(self, rows: list[Row], number: int, at: int, metrics: dict[str, list[float]]) -> PendingRollout:
        """Request completions of these rows from vLLM's server without waiting for them."""
        request = Request(getattr(self.vllm_generation, "vllm_client", None))
        if self._last_loaded_step != self.state.global_step:
            self.vllm_generation.sync_weights()  # before `sending`, inside which the client only asks
            self._last_loaded_step = self.state.global_step
        with request.sending():
            prompts = self._tokenize_prompts([row["prompt"] for row in rows])
            self._generate_single_turn(*prompts, self.num_generations)
        asked_at = {"global_step": self.state.global_step, "epoch": self.state.epoch}
        return PendingRollout(rows, request, asked_at, number, at, metrics)

    def _finish_pending(self) -> None:
        """Wait for the requested batch, if any, and complete it with the step and epoch of its request."""
        lag, pending = self.parts.lag, self.parts.lag.pending
        if pending is None:
            return
        was_training, lag.pending = self.model.training, None  # an evaluation may have come before a checkpoint
        self.model.train()
        with (
            lag.generating(pending.number, self._position, self._metrics, pending.metrics),
            pending.request.answering(),
            temporarily(self.state, pending.state),
        ):
            lag.put(self._rollout(pending.rows), pending.number, pending.at, pending.metrics)
        self.model.train(was_training)

    # its completions, log-probabilities and rewards

    def _generate(self, prompts: list[Any]) -> Any:
        if "parts" not in vars(self):  # made without __init__, as TRL's TestGRPORolloutDispatch does
            return super()._generate(prompts)
        with self.parts.phases("generate"):
            if (kept := self.parts.prompts.take_generated()) is not None:
                return kept
            with self.parts.provenance.recording(self, is_training=self.model.training):
                generated = super()._generate(prompts)
            if self.model.training:
                self.parts.throughput.generated += sum(written_tokens(*generated[1:3]))
            if self._ends_with_generation:
                raise _Generated(prompts, generated)
            return generated

    def _generate_single_turn(self, prompt_ids: Any, *positional: Any, **keywords: Any) -> Any:
        if not self.parts.choices["generation"]:
            return super()._generate_single_turn(prompt_ids, *positional, **keywords)
        draw = None
        if (noise := self.parts.common_noise) is not None:
            draw = noise.draw(prompt_ids, self._position.rollout if self.model.training else generation.EVALUATION)
        with generation.compact_generation(self.accelerator.unwrap_model(self.model_wrapped), draw):
            return super()._generate_single_turn(prompt_ids, *positional, **keywords)

    def _sync_weights(self, sync_weights: Callable[[], None]) -> None:
        """Wraps vLLM's ``sync_weights``, which TRL calls when the weights have changed; checks agreement afterwards."""
        with self.parts.phases("sync"):
            sync_weights()
            if (check := self.parts.engine_check) is not None:
                # not self._get…, which would count it as a pass of the rollout batch
                score = super()._get_per_token_logps_and_entropies
                check(self.vllm_generation, self.model, score, self.state.global_step, self._metrics["train"])

    def _tool_call_loop(self, prompts: Any, prompt_ids: Any, completion_ids: Any, completions: Any, *rest: Any) -> Any:
        """TRL's loop, which calls tools one by one; environments that can make the calls of several rows together."""
        together = getattr(self.environments[0], "_side_by_side", None) if self.environments else None
        with (
            nullcontext() if together is None else together(self.environments, completions),
            temporarily(self.parts, {"common_noise": None}),  # ranks have different numbers of later turns
        ):
            return super()._tool_call_loop(prompts, prompt_ids, completion_ids, completions, *rest)

    def _get_tool_suffix_ids(self, tool_messages: list[dict[str, Any]]) -> Any:
        """TRL's, for answers and names (a policy may invent one) made readable and cut to length by `fitted`."""
        for message in tool_messages:
            message |= {
                key: generation.fitted(message[key], self._tokenizer, self.max_completion_length) for key in message
            }
        return super()._get_tool_suffix_ids(tool_messages)

    def _get_per_token_logps_and_entropies(self, *positional: Any, **keywords: Any) -> Any:
        """Called for π_old and the reference of a rollout batch, and for π inside each loss.

        Inside a loss it also overwrites ``batch["advantages"]`` with A · w · keep · c: TRL reads them after this call.
        """
        score = super()._get_per_token_logps_and_entropies
        result = self.parts.scoring(score, *positional, is_training=self.model.training, **keywords)
        self.parts.loss.write_advantages(result[0], result[1])  # these two act only in a loss
        self.parts.provenance.watch(result[0])
        return result

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> Tensor:
        parts = self.parts
        with parts.phases("verify_wait"):
            kept = parts.prompts.take_rewards(self._pending_extra_logs)
            rewards: Tensor = super()._calculate_rewards(*positional, **keywords) if kept is None else kept
        parts.rewards.refuse_unusable(rewards)
        if self.model.training:
            parts.rewards.keep(rewards, self._pending_extra_logs)
        return rewards

    # 4. The loss of a micro-batch, and the optimizer step

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if not self.model.training:
            return super()._compute_loss(model, inputs)
        parts = self.parts
        # TRL's loss asks for log π: there `Loss.write_advantages` makes A into A · w · keep · c
        with parts.loss.of(inputs, self._position) as batch, parts.scoring.of(batch), parts.provenance.of(self, batch):
            loss = super()._compute_loss(model, batch)
        parts.throughput.trained(parts.loss.means, batch)
        return parts.loss.finish(loss, batch, self._metrics["train"], is_last=self.accelerator.sync_gradients)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        self.parts.phases.gradient_is_complete()
        faults = self.parts.faults
        evidence = {"rollout_batch": self._buffered_inputs, "micro_batches_trained": self._step}
        if faults is not None and faults.skips_step(norm, self._position, evidence, self.save_model):
            self.model.zero_grad(set_to_none=True)  # the optimizer and the LR scheduler step without gradients
            self._metrics["train"]["faults/skipped"] = [float(faults.counts[SKIPPED])]
        return norm

    def _maybe_log_save_evaluate(self, *positional: Any, **keywords: Any) -> None:
        if self.control.should_log and self.state.global_step > self._globalstep_last_logged:
            # a collective: here all ranks are, while `log` may be called by one
            for name, value in self.parts.loss.means.read(self.accelerator).items():
                self._metrics["train"][name].append(value)
        super()._maybe_log_save_evaluate(*positional, **keywords)

    def log(self, logs: dict[str, float], *positional: Any, **keywords: Any) -> None:
        with self.parts.phases("log"):
            super().log(logs, *positional, **keywords)

    # 5. Evaluation

    def evaluate(self, eval_dataset: Any = None, *positional: Any, **keywords: Any) -> dict[str, float]:
        """TRL's evaluation, or ours where decodings are given: a metric of no scored row is NaN and not logged."""
        parts = self.parts
        self._finish_pending()
        if parts.common_noise is not None:
            parts.common_noise.start_over()
        with parts.phases("evaluate"):
            if not parts.held_out.options.decodings:  # else `HeldOut` sets each set's seed
                with parts.held_out.own_randomness():
                    return super().evaluate(eval_dataset, *positional, **keywords)
            datasets = self.eval_dataset if eval_dataset is None else eval_dataset
            with generation.engine_kept_awake(self):
                metrics = parts.held_out.evaluate(datasets, self.state.global_step, self._run_evaluation_loop)
            self._metrics["eval"].clear()  # TRL's own, in which padding counts
            self.log({name: value for name, value in metrics.items() if not math.isnan(value)})
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
            return metrics

    def _run_evaluation_loop(self, batches: "DataLoader[Any]", decoding: Decoding) -> None:
        """transformers' evaluation loop, which also prepares an untrained model, with the decoding's sampling."""
        wanted = decoding.generation_arguments
        engine: Any = self.vllm_generation if self.use_vllm else self
        changed: dict[str, Any] = {}
        if wanted and self.use_vllm:  # temperature 0 is greedy there
            changed = {"temperature": 0.0 if decoding.greedy else decoding.temperature}
        elif wanted:
            arguments = {**self.generation_kwargs, **wanted}
            config = GenerationConfig(**arguments, disable_compile=True)
            changed = {"generation_kwargs": arguments, "generation_config": config}
        with temporarily(engine, changed):
            self.evaluation_loop(batches, "Evaluation", prediction_loss_only=True)

    def prediction_step(self, model: Any, inputs: Any, *positional: Any, **keywords: Any) -> Any:
        held_out = self.parts.held_out
        if held_out.under_way is not None:
            held_out.answer(inputs, self._answered, self.state)
            self.model.eval()  # transformers' continuous batching leaves it in training mode
            return None, None, None
        if held_out.options.decodings or self.strategies.are_trls_own:
            return super().prediction_step(model, inputs, *positional, **keywords)
        self._prepare_inputs(inputs)  # no loss: TRL's advantages are not trained on
        return None, None, None

    def _answered(self, rows: list[Any]) -> Answered:
        """Completions of held-out rows, each in an environment of its own; training's are not touched."""
        own = {"_environment_pool": self.parts.held_out.environments, "environments": None}
        with temporarily(self, own if getattr(self, "environment_factories", None) else {}):
            prompts, generated = self._generated_alone(rows)
            columns = {"environments": self.environments} if self.environments else {}
            return Answered(prompts, generated[3], generated[1], written_tokens(*generated[1:3]), columns)

    # 6. Checkpoints

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._finish_pending()
        states = checkpoint.agreed_states(self.strategies.all)
        measured = LogState(
            {name: list(map(float, values)) for name, values in self._metrics["train"].items()},
            self.parts.loss.means.state_dict(),
            self._tr_loss.item(),
            self._total_loss_scalar,
            self._globalstep_last_logged,
        )
        queue = self.parts.lag.packed()
        content = self.parts.checkpoint.content(states, measured, queue)
        folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
        super()._save_checkpoint(model, trial)
        if queue:
            self.parts.checkpoint.queue_file(folder).write_bytes(queue)
        if self.accelerator.is_main_process:
            torch.save(content, folder / checkpoint.FILE)

    def create_model_card(self, *positional: Any, **keywords: Any) -> None:
        """TRL's card; none where guards are set: it knows no local base model and no results (`export` writes one)."""
        if self.parts.faults is None:
            super().create_model_card(*positional, **keywords)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """TRL's, in which tied weights are not reported missing."""
        tied = getattr(self.model, "all_tied_weights_keys", None) or {}
        missing = [name for name in load_result.missing_keys if name not in tied]
        super()._issue_warnings_after_load(load_result._replace(missing_keys=missing))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self.parts.checkpoint.read(Path(checkpoint))
            self.parts.lag.unpack(self.parts.checkpoint.queue)
            self.parts.microbatches.resume()
        if (ratio := self.parts.checkpoint.branch) is None:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        settings = optimizer_settings(self.optimizer, self.lr_scheduler)
        super()._load_optimizer_and_scheduler(checkpoint)
        set_optimizer(self.optimizer, self.lr_scheduler, settings, ratio)

    def _restore_log_state(self, logged: LogState) -> None:
        """Restore what was measured before the checkpoint and not logged; transformers has reset its own sums."""
        self._metrics["train"].update({name: list(values) for name, values in logged.metrics.items()})
        self.parts.loss.means.load_state_dict(logged.means, self._tr_loss.device)
        self._tr_loss = torch.tensor(logged.loss, device=self._tr_loss.device)
        self._total_loss_scalar = logged.total_loss
        self._globalstep_last_logged = logged.last_logged


class EndOfStep(TrainerCallback):
    """Adds each optimizer step's times to the metrics that are logged next."""

    def __init__(self, parts: "Parts", metrics: dict[str, Any]) -> None:
        self.parts, self.metrics = parts, metrics

    def on_step_end(self, *_: Any, **__: Any) -> None:
        seconds = self.parts.phases.end_step()
        self.parts.throughput.end_step(self.parts.loss.means, seconds)
        for name, value in seconds.items():
            self.metrics["train"][name].append(value)


class _Generated(Exception):  # noqa: N818 no error: it ends TRL's rollout where completions are all that is wanted
    def __init__(self, prompts: list[Any], generated: Any) -> None:
        super().__init__()
        self.prompts, self.generated = prompts, generated


class Parts:
    """The objects that `RLVRTrainer` calls, in the order of a step; none of them keeps the trainer.

    Attributes:
        choices: name of `SWITCHES` → whether that shortcut is used.
        common_noise, row_keys, teacher, revisions, engine_check, faults: ``None`` where they were not asked for.
    """

    def __init__(
        self, setup: Setup, trainer: Any, engine: Engine | None, evaluation: Evaluation, guards: Guards | None
    ):
        args, strategies, ranks, model = setup.args, setup.strategies, setup.ranks, trainer.model
        config = model.config.get_text_config()
        functions = dict(zip(trainer.reward_func_names, trainer.reward_funcs, strict=True))
        wants_keys = any(getattr(each, "wants_row_keys", False) for each in trainer.reward_funcs)
        self.ranks, self.schedule, self.choices = ranks, setup.schedule, setup.choices
        self.phases, self.lag, self.checkpoint = Phases(), Lag(setup), Checkpoint(strategies.all, ranks)
        counts = self.checkpoint.counts
        self.prompts = Prompts(setup, trainer.train_dataset)
        self.row_keys = generation.SampleKeys(args.seed, ranks) if wants_keys else None
        noisy = setup.settings.speed.common_random_numbers
        self.common_noise = generation.CommonRandomNumbers(args.seed, ranks) if noisy else None
        self.engine_check = None
        if engine is not None and args.use_vllm:
            self.engine_check = EngineCheck(setup, engine.agreement_bound)
        self.provenance, self.rewards = Provenance(setup), Rewards(setup)
        self.microbatches = Microbatches(setup, counts, config)
        self.scoring = Scoring(setup, self.microbatches, self.phases)
        self.teacher = None if strategies.teacher is None else Teacher(strategies.teacher, setup)
        self.revisions = None if strategies.revision is None else Revisions(strategies.revision, setup)
        self.advantages, self.recorder = Advantages(setup), Recorder(setup)
        self.held_out = HeldOut(setup, evaluation, functions)
        self.faults = None
        if guards is not None:
            scaled, made = getattr(trainer.accelerator, "scaler", None) is not None, trainer.is_deepspeed_enabled
            self.faults = FaultGuard(guards, ranks, counts, norm_is_scaled=scaled, step_is_made=made)
        self.loss = Loss(setup)
        self.throughput = Throughput(config, ranks.device, setup.dtype)

    def begin_training(self) -> None:
        """Forget what a training that ended in an exception left half done."""
        self.phases.begin_training()
        self.throughput.generated = 0
        self.loss.begin_training()
        self.provenance.begin_training()
        self.lag.clear()
        self.checkpoint.counts[ROLLOUT_BATCHES] = 0
        for keys in (self.common_noise, self.row_keys):
            if keys is not None:
                keys.start_over()
        if self.faults is not None:
            self.faults.begin_training()


def setup_of(
    trainer: Any, speed: Speed, cut: Literal["by_rank", "over_all_ranks"], *, decodes: bool, drop_in: bool
) -> Setup:
    """The `Setup` of a trainer whose TRL side is initialized.

    Raises:
        Refusal: the loaded model, data or reward functions do not go with the settings.
    """
    plugin = trainer.accelerator.state.deepspeed_plugin if trainer.is_deepspeed_enabled else None
    zero3 = plugin is not None and plugin.zero_stage == 3
    ranks = Ranks(trainer.accelerator, sharded=bool(trainer.is_fsdp_enabled or zero3))
    loaded = model_facts(trainer, speed, ranks)
    settings = choices.Settings(trainer.args, trainer.strategies, speed, cut, decodes, drop_in, loaded)
    compatibility.refuse(settings, "model")
    return Setup(
        settings,
        {option: is_taken(settings, ranks, option) for option in choices.SWITCHES},
        ranks,
        trainer._tokenizer,
        partial(trainer.processing_class.batch_decode, skip_special_tokens=True),
        frozenset({*trainer.eos_token_ids, trainer._tokenizer.pad_token_id}),
        trainer.reward_func_names,
        trainer.reward_weights,
        compute_dtype(trainer.args, trainer.model),
    )


def model_facts(trainer: Any, speed: Speed, ranks: Ranks) -> choices.Loaded:
    """Facts about the loaded model, the data and the reward functions."""
    model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
    config = trainer.model.config.get_text_config()
    own = [name for name in ("rollout_func", "tools", "environment_factories") if getattr(trainer, name, None)]
    environments = [*(getattr(trainer, "environment_factories", None) or {}).values()]
    turn_columns = [kind.turn_columns for kind in environments if hasattr(kind, "turn_columns")]  # a run file's do
    columns = getattr(trainer.train_dataset, "column_names", None) or ()
    varies = None
    if any(choices.drops(module) for module in trainer.model.modules()):
        varies = "the model has dropout, of which each pass draws its own"
    elif getattr(config, "router_jitter_noise", 0.0):
        varies = "the router of the model's experts is noisy (router_jitter_noise)"
    reads_cache = speed.generation != "trl" or speed.shared_prompts is not False
    has_plain_cache = not reads_cache or generation.preallocated_cache(model.config) is not None
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # without adapters
    of_model = {} if trainer.use_vllm else vars(model.generation_config)
    return choices.Loaded(
        own_generation=own[0] if own else None,
        has_router_loss=bool(trainer.aux_loss_enabled),
        is_vlm=trainer._is_vlm,
        rope_type=choices.rope_type(config),
        varies=varies,
        has_plain_cache=has_plain_cache,
        unshareable=unshareable(
            base, has_plain_cache=has_plain_cache, has_rotary_positions=choices.rope_type(config) is not None
        )
        if speed.shared_prompts is not False
        else None,
        is_sharded=ranks.sharded,
        turn_columns=frozenset[str]().union(*turn_columns if len(turn_columns) == len(environments) else ()),
        sampling={name: of_model[name] for name in compatibility.PLAIN_SAMPLING if of_model.get(name) is not None},
        image_column=next((name for name in ("image", "images") if name in columns), None),
    )


def is_taken(settings: choices.Settings, ranks: Ranks, option: choices.Option) -> bool:
    """Whether an option of `Speed` is used; warns with the reasons where it was requested but is not exact.

    ``None`` is used where exact, and never warns; of ``skip_old_logps`` only if planned micro-batches are set, too.
    """
    speed, asked = settings.speed, getattr(settings.speed, option)
    wanted = asked not in (False, "trl")
    if option == "skip_old_logps":
        wanted = wanted and settings.corrects_engine and settings.is_on_policy
        wanted = wanted and (asked is True or speed.microbatches == "planned")
    problems = choices.problems_of(settings, option) if wanted else []
    if problems and asked is not None:
        ranks.warn(f"{option} stays TRL's: {'; '.join(problems)}.")
    return wanted and not problems
