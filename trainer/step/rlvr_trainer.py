"""`RLVRTrainer`: TRL's `GRPOTrainer` with exchangeable advantages, token weights and update schedules.

The only file that knows how TRL trains (`EvaluatingTrainer`: how it generates for held-out rows). It moves tensors
between TRL's seams and the pure functions; no body of TRL is copied. What it relies on is pinned by
tests/trainer/step/test_trl_contract.py.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler
from trl import GRPOConfig
from trl.trainer.utils import RepeatSampler

from trainer.algorithms import diagnostics
from trainer.algorithms.advantages import dead_groups
from trainer.algorithms.registry import PartSpec
from trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from trainer.algorithms.strategies import build_strategies
from trainer.algorithms.token_weights import uniform
from trainer.step.compatibility import PreflightError, check_combination
from trainer.step.evaluating_trainer import EvaluatingTrainer


class EpochSampler(Sampler[int]):
    """TRL's `RepeatSampler`, whose order is made a function of (seed, epoch).

    Epoch e draws what the stock sampler draws at its e-th pass. The stock sampler starts over at pass 0 after a
    resume, and would train the first epoch's order again.
    """

    def __init__(self, sampler: RepeatSampler) -> None:
        self.sampler = sampler
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Called by accelerate's dataloader before each epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(self.sampler.seed)
            for _ in range(self.epoch):
                torch.randperm(self.sampler.num_samples, generator=self.sampler.generator)
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class RLVRTrainer(EvaluatingTrainer):
    """A drop-in for `trl.GRPOTrainer` whose advantage estimator, token weights and update schedule are parts.

    All arguments of `GRPOTrainer`, and by keyword:

    Args:
        advantage: rewards → advantages. A name (grpo, dr_grpo, rloo, reinforce_pp, exchangeable), a
            ``package.module:attribute``, ``{name: …, option: …}`` or a function.
        token_weight: the same for token weights (uniform, adv_reweight).
        update_schedule: the same for update schedules (single_pass, lopti).
        evaluation_seed, decodings: see `EvaluatingTrainer`; without them `evaluate` is TRL's.

    With the defaults its final weights equal `GRPOTrainer`'s bit for bit, except that groups with equal rewards get
    exactly zero advantage where TRL's float noise is scaled up.

    Raises:
        PartError: a strategy that cannot be built.
        PreflightError: strategies and TRL settings that do not go together.
        ValueError: a reward is infinite.
    """

    def __init__(
        self,
        model: Any,
        reward_funcs: Any = None,
        args: GRPOConfig | None = None,
        *positional: Any,
        advantage: PartSpec = "grpo",
        token_weight: PartSpec = "uniform",
        update_schedule: PartSpec = "single_pass",
        **keywords: Any,
    ) -> None:
        self.strategies = build_strategies(advantage, token_weight, update_schedule)
        if args is not None:
            check_combination(args, self.strategies)
        self._rewards_per_func: Tensor | None = None
        self._on_policy_batch: dict[str, Any] | None = None
        super().__init__(model, reward_funcs, args, *positional, **keywords)
        if args is None:
            check_combination(self.args, self.strategies)
        num_passes = self.strategies.schedule.num_passes
        if num_passes > 1 and self.aux_loss_enabled:
            raise PreflightError(
                f"update_schedule {self.strategies.update_schedule.name!r} with a Mixture-of-Experts model: its "
                f"load-balancing loss would be applied {num_passes} times to each batch. Set router_aux_loss_coef: 0.0."
            )
        self.num_iterations *= num_passes

    def _get_train_sampler(self, dataset: Any = None) -> Sampler[int]:
        return EpochSampler(super()._get_train_sampler(dataset))

    def newest_samples(self, number: int) -> list[dict[str, Any]]:
        """Up to ``number`` completions of the newest rollout batch, evenly spread, each as column → value."""
        columns = {"prompt": self._logs["prompt"], "completion": self._logs["completion"]}
        columns |= {**self._logs["rewards"], **self._logs["extra"], "advantage": self._logs["advantages"]}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for row in rows:
            for name in ("prompt", "completion"):
                row[name] = row[name] if isinstance(row[name], str) else row[name][-1]["content"]
        return rows[:: max(1, len(rows) // max(1, number))][:number]

    def any_rank(self, flag: bool) -> bool:
        """Whether ``flag`` is up on any rank; all ranks must ask."""
        flags = self.accelerator.gather(torch.tensor([flag], device=self.accelerator.device))
        return bool(flags.any())

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> Tensor:
        rewards_per_func = super()._calculate_rewards(*positional, **keywords)
        infinite = rewards_per_func.isinf()
        if infinite.any():
            names = [name for name, bad in zip(self.reward_func_names, infinite.any(0).tolist(), strict=True) if bad]
            raise ValueError(
                f"The reward of {', '.join(names)} is infinite for {int(infinite.any(1).sum())} of "
                f"{len(rewards_per_func)} completions; one of them would make every advantage of its group "
                "meaningless. Return a finite number, or None where no judgement is possible."
            )
        self._rewards_per_func = rewards_per_func
        if self.model.training:
            self._log_group_composition(len(rewards_per_func) // self.accelerator.num_processes)
        return rewards_per_func

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        batch = super()._generate_and_score_completions(inputs)
        if self.model.training:
            batch["advantages"] = self._estimate_advantages(batch)
        return batch

    def _estimate_advantages(self, batch: dict[str, Any]) -> Tensor:
        """This rank's advantages, (B,) or (B, T), from the rewards of all ranks."""
        rewards_per_func, self._rewards_per_func = self._rewards_per_func, None
        assert rewards_per_func is not None
        weighted = rewards_per_func * self.reward_weights.to(rewards_per_func.device).unsqueeze(0)
        rewards = weighted.nansum(dim=1).masked_fill(rewards_per_func.isnan().all(dim=1), torch.nan)  # (N,)

        mask = self._loss_mask(batch)
        inputs = {
            "lengths": self.accelerator.gather(mask.sum(1)),
            "completion_ids": self._gather_tokens(batch["completion_ids"], self._tokenizer.pad_token_id),
            "mask": self._gather_tokens(mask, 0),
        }
        if self.loss_type in PER_SEQUENCE_MEAN | ONE_DENOMINATOR:
            inputs["sequence_weights"] = loss_sequence_weights(
                self.loss_type, inputs["lengths"], self._sequence_ratio(batch)
            )
        advantages = self.strategies.advantage(rewards, self.num_generations, **inputs)
        self._log_advantages(rewards, advantages, inputs)

        local_rows, local_tokens = batch["completion_ids"].shape
        start = self.accelerator.process_index * local_rows
        advantages = advantages.nan_to_num(nan=0.0)[start : start + local_rows]
        return advantages[:, :local_tokens] if advantages.dim() == 2 else advantages

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if not self.model.training:
            return super()._compute_loss(model, inputs)
        batch = dict(inputs)  # the buffered batch serves later passes too
        if "old_per_token_logps" in batch:
            self._apply_strategies(batch, batch["old_per_token_logps"])
        else:
            self._on_policy_batch = batch
        try:
            return super()._compute_loss(model, batch)
        finally:
            self._on_policy_batch = None

    def _get_per_token_logps_and_entropies(self, model: Any, *positional: Any, **keywords: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(model, *positional, **keywords)
        if self._on_policy_batch is not None:  # π_old is the current π; TRL reads the batch's advantages after this
            self._apply_strategies(self._on_policy_batch, result[0])
        return result

    @torch.no_grad()
    def _apply_strategies(self, batch: dict[str, Any], old_logps: Tensor) -> None:
        """Turn ``batch``'s advantages into those of the current pass's tokens, weighted, (B, T)."""
        probs, mask = old_logps.detach().exp(), self._loss_mask(batch)
        self._log_token_probs(probs, mask)
        if self.strategies.token_weight.function is not uniform:
            advantages = batch["advantages"]
            if advantages.dim() == 1:
                advantages = advantages.unsqueeze(1).expand_as(probs)
            weights = self.strategies.token_weight(probs, advantages, mask)
            batch["advantages"] = advantages * weights
            self._log_token_mean("token_weight/mean", weights, mask)
        schedule = self.strategies.schedule
        if schedule.num_passes > 1:
            pass_index = (self._step // self.args.steps_per_generation) % schedule.num_passes
            keep = schedule.select(probs, mask, pass_index)
            advantages = batch["advantages"]
            batch["advantages"] = (advantages.unsqueeze(1) if advantages.dim() == 1 else advantages) * keep
            if self.beta != 0.0:  # the KL term too acts on this pass's tokens alone; preflight admits only exact losses
                batch["tool_mask"] = keep.to(mask.dtype)
            self._log_token_mean(f"update_schedule/frac_tokens_pass_{pass_index + 1}", keep.float(), mask)
        self._log_gradient_shares(probs, batch["advantages"], mask)

    def _loss_mask(self, batch: dict[str, Any]) -> Tensor:
        """Tokens that the loss counts, (B, T)."""
        mask: Tensor = batch["completion_mask"]
        return mask * batch["tool_mask"] if "tool_mask" in batch else mask

    def _gather_tokens(self, tokens: Tensor, padding: int) -> Tensor:
        """(B, T) of this rank → (N, longest T) of all."""
        padded = self.accelerator.pad_across_processes(tokens, dim=1, pad_index=padding)
        gathered: Tensor = self.accelerator.gather(padded)
        return gathered

    def _sequence_ratio(self, batch: dict[str, Any]) -> Tensor | None:
        """vLLM's sequence-level importance ratio of all ranks (N,), where there is one."""
        if "importance_sampling_ratio" not in batch or not self.vllm_importance_sampling_mode.startswith("sequence"):
            return None
        ratio: Tensor = self.accelerator.gather(batch["importance_sampling_ratio"].squeeze(1))
        return ratio

    def _log_token_mean(self, name: str, values: Tensor, mask: Tensor) -> None:
        """Mean of ``values`` (B, T) over the tokens of all ranks."""
        totals = self.accelerator.reduce(torch.stack([(values * mask).sum(), mask.sum().to(values.dtype)]), "sum")
        self._metrics["train"][name].append((totals[0] / totals[1].clamp(min=1)).item())

    def _log_token_probs(self, probs: Tensor, mask: Tensor) -> None:
        counts = self.accelerator.reduce(diagnostics.token_prob_counts(probs, mask), "sum").tolist()
        for index, count in enumerate(counts):
            self._metrics["train"][f"token_prob/frac_q{index + 1}"].append(count / max(sum(counts), 1))

    def _log_gradient_shares(self, probs: Tensor, advantages: Tensor, mask: Tensor) -> None:
        per_token = advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand_as(probs)
        sums = self.accelerator.reduce(diagnostics.gradient_shares(probs, per_token, mask), "sum")
        if (total := sums.sum().item()) > 0:  # a batch of dead groups has no gradient
            for index, size in enumerate(sums.tolist()):
                self._metrics["train"][f"grad_share/q{index + 1}"].append(size / total)

    def _log_group_composition(self, local_rows: int) -> None:
        """From the column ``correct`` that reward functions made of verifiers leave; others leave none."""
        logged = self._pending_extra_logs.get("correct", [])[-local_rows:]
        if len(logged) == local_rows:
            values = [torch.nan if right is None else float(right) for right in logged]
            correct = self.accelerator.gather(torch.tensor(values, device=self.accelerator.device))
            all_right, all_wrong = diagnostics.group_composition(correct, self.num_generations)
            self._metrics["train"]["groups/frac_all_correct"].append(all_right.item())
            self._metrics["train"]["groups/frac_all_wrong"].append(all_wrong.item())

    def _log_advantages(self, rewards: Tensor, advantages: Tensor, inputs: dict[str, Tensor]) -> None:
        """Group composition, size of the advantages, cancellation; and the completions table's advantage column."""
        metrics, mask, unjudged = self._metrics["train"], inputs["mask"], rewards.isnan()
        metrics["groups/frac_unjudged"].append(unjudged.float().mean().item())
        metrics["groups/frac_dead"].append(dead_groups(rewards, self.num_generations).float().mean().item())
        advantages = advantages.nan_to_num(nan=0.0)
        per_token = advantages if advantages.dim() == 2 else advantages[:, None].expand(mask.shape)
        per_response = (per_token * mask).sum(1) / mask.sum(1).clamp(min=1) if advantages.dim() == 2 else advantages
        metrics["advantage/mean_abs"].append(per_response[~unjudged].abs().mean().item())

        logged = self._logs["advantages"]  # TRL has just logged its own
        for _ in range(min(len(per_response), len(logged))):
            logged.pop()
        logged.extend(per_response.tolist())

        if "sequence_weights" in inputs:
            arguments = (per_token, inputs["sequence_weights"], inputs["completion_ids"], mask, self.num_generations)
            residuals = {
                "cancellation/shared_prefix": diagnostics.shared_prefix_residual(*arguments),
                "cancellation/frequent_tokens": diagnostics.frequent_token_residual(*arguments),
            }
            for name, residual in residuals.items():
                if not residual.isnan():  # a batch of dead groups has nothing to cancel
                    metrics[name].append(residual.item())
