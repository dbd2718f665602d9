"""From the rewards of a rollout batch to the advantages of its rows."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.rewards.verifier import LARGEST_SCORE
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.contract import ADVANTAGE, SIGNALS, TURN_COLUMNS
from evenkeel.trainer.algorithms.row_draws import row_data
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from evenkeel.trainer.algorithms.signals import Signals, estimator_signals
from evenkeel.trainer.algorithms.turns import turn_column
from evenkeel.trainer.evaluation.judging import logged_columns
from evenkeel.trainer.step.metrics import per_response, rollout_metrics
from evenkeel.trainer.step.rollout import Rollout, verdicts
from evenkeel.trainer.step.setup import Setup


class Rewards:
    """The newest rollout batch's rewards, kept from `_calculate_rewards` until its advantages are computed.

    Attributes:
        per_function: (N, F) of all ranks.
        columns: columns that this rank's reward functions logged: name → one value a row.
    """

    per_function: Tensor
    columns: dict[str, list[Any]]

    def __init__(self, setup: Setup) -> None:
        self.names, self.weights, self.ranks = setup.reward_names, setup.reward_weights, setup.ranks

    def keep(self, rewards_per_function: Tensor, logged: Mapping[str, list[Any]]) -> None:
        """Keep the rewards (N, F) of all ranks and, for this rank's rows, the last values of each ``logged`` column."""
        self.columns = logged_columns(logged, len(rewards_per_function) // self.ranks.count)
        self.per_function = rewards_per_function

    def refuse_unusable(self, rewards_per_function: Tensor) -> None:
        """Check the rewards (N, F).

        Raises:
            ValueError: a reward is infinite, or so large that squares would overflow float32.
        """
        weighted = rewards_per_function * self.weights.to(rewards_per_function.device)
        too_large = (rewards_per_function.abs() > LARGEST_SCORE) | (weighted.abs() > LARGEST_SCORE)
        if too_large.any():
            columns = zip(self.names, rewards_per_function.T, too_large.T, strict=True)
            named = [f"{name} ({values[bad][0].item():g})" for name, values, bad in columns if bad.any()]
            raise ValueError(
                f"The reward of {', '.join(named)}, by itself or with its weight, is infinite or beyond "
                f"±{LARGEST_SCORE:g}. Return smaller numbers, or None where no score is possible."
            )


class Advantages:
    """Advantages of a rollout batch, and the data that its rows keep when it is cut."""

    def __init__(self, setup: Setup) -> None:
        self.args, self.strategies, self.ranks = setup.args, setup.strategies, setup.ranks
        self.reward_weights, self.padding = setup.reward_weights, setup.tokenizer.pad_token_id
        self.ratio_comes_later = setup.choices["skip_old_logps"]  # it is only known when the loss is computed
        self.turn_columns = setup.settings.loaded.turn_columns

    def signals(self, rollout: Rollout) -> Signals:
        """The signals of an estimator, of all ranks' completions; each is gathered at its first lookup."""
        ranks, batch, columns = self.ranks, rollout.batch, rollout.columns
        mask = ranks.gathered_tokens(rollout.mask, 0)
        others = {name: values for name, values in columns.items() if name not in SIGNALS[ADVANTAGE]}
        return estimator_signals(
            rewards_per_function=rollout.rewards_per_function,
            reward_weights=self.reward_weights,
            group_size=self.args.num_generations,
            mask=mask,
            completion_ids=lambda: ranks.gathered_tokens(batch["completion_ids"], self.padding),
            correct=lambda: self._gathered_verdicts(columns, len(batch["completion_ids"])),
            old_logps=lambda: ranks.gathered_tokens(rollout.old_score("old_per_token_logps"), 0),
            entropies=lambda: ranks.gathered_tokens(rollout.old_score("old_entropies"), 0),
            sum_pi_squared=lambda: ranks.gathered_tokens(rollout.old_score("old_sum_pi_squared"), 0),
            teacher_logps=lambda: ranks.gathered_tokens(batch["teacher_logps"], 0),
            teacher_contrast=lambda: ranks.gathered_tokens(batch["teacher_contrast"], 0),
            sequence_weights=lambda: self._sequence_weights(rollout, mask),
            turn_rewards=lambda: self._of_turns(rollout, "turn_rewards"),
            state_keys=lambda: self._of_turns(rollout, "state_keys"),
            step=rollout.position.step,
            max_steps=rollout.position.max_steps,
            **{name: partial(self._column, name, values) for name, values in others.items()},
        )

    def write_advantages(self, rollout: Rollout, signals: Signals, logs: dict[str, Any]) -> dict[str, float]:
        """Replace TRL's advantages in the batch and table ``logs`` by the estimator's, (B,) or (B, T); give metrics.

        Raises:
            PartError: the estimator breaks its contract, or asks for a column that no reward function logged.
        """
        batch = rollout.batch
        if self.strategies.advantage is None:
            advantages = self.ranks.gathered(batch["advantages"])
        else:
            self._check_columns(signals)
            advantages = update.advantages(self.strategies, signals, rollout.position.where)
            batch["advantages"] = self.ranks.own_rows(advantages, batch["completion_ids"])
            logged, trained = logs["advantages"], per_response(advantages, signals["mask"]).tolist()
            for _ in range(min(len(trained), len(logged))):
                logged.pop()
            logged.extend(trained)
        return rollout_metrics(signals["rewards"], advantages, signals)

    def write_row_data(self, rollout: Rollout, signals: Signals) -> Tensor:
        """Add its `row_data` to each row of the batch; returns the shared prefixes (N,) of all ranks' rows."""
        seed, number = self.args.seed, rollout.position.rollout
        data = row_data(signals, self.strategies.advantage, seed=seed, rollout_number=number)
        ids = rollout.batch["completion_ids"]
        rollout.batch |= {name: self.ranks.own_rows(values, ids) for name, values in data.items()}
        return data["shared_prefix"]

    def _check_columns(self, signals: Signals) -> None:
        """Refuse an estimator that asks for a column that no reward function logged."""
        estimator = self.strategies.advantage
        assert estimator is not None
        logged = ("correct", *TURN_COLUMNS)
        for name in (*estimator.columns, *(name for name in logged if name in estimator.signals)):
            absent = signals[name] is None if name in logged else self.ranks.any(name not in signals)
            if absent:
                left = ", ".join(key for key in signals if key not in SIGNALS[ADVANTAGE]) or "none"
                each = "list, one entry for each turn," if name in TURN_COLUMNS else "number"
                raise PartError(
                    f"advantage {estimator.name!r} asks for the column {name!r}, which no reward function logged for "
                    f"every completion; columns that were: {left}. Log one {each} a row: log_extra({name!r}, values)."
                )

    def _gathered_verdicts(self, columns: dict[str, list[Any]], rows: int) -> Tensor | None:
        """`verdicts` of all ranks (N,), ``None`` if any rank has none; a collective."""
        local = verdicts(columns, noisy=True)
        values = torch.full((rows,), torch.nan) if local is None else local
        flagged = torch.cat([torch.tensor([float(local is not None)]), values]).to(self.ranks.device)
        gathered = self.ranks.gathered(flagged).view(-1, rows + 1)
        return gathered[:, 1:].flatten() if bool(gathered[:, 0].all()) else None

    def _column(self, name: str, values: list[Any]) -> Tensor:
        bad = [value for value in values if value is not None and not isinstance(value, float | int)]
        if self.ranks.any(bool(bad)):  # all ranks raise: the others would wait in the next collective
            logged = f"{bad[0]!r:.60}" if bad else "no number on another rank"
            raise PartError(f"The column {name!r}, which the estimator asks for, holds {logged}. Log numbers.")
        numbers = torch.tensor([torch.nan if value is None else float(value) for value in values])
        return self.ranks.gathered(numbers.to(self.ranks.device))

    def _of_turns(self, rollout: Rollout, name: str) -> Tensor | None:
        """A column of `TURN_COLUMNS` of all ranks (N, K); ``None`` if any rank has none."""
        lists, fault = rollout.columns.get(name), ""
        if lists is None and name in self.turn_columns:
            lists = [None] * len(rollout.mask)
        if self.ranks.any(lists is None):
            return None
        local = torch.empty(0)
        try:
            local = turn_column(name, lists or [], rollout.mask)
        except ValueError as error:
            fault = str(error)
        if self.ranks.any(bool(fault)):  # all ranks raise: the others would wait in the next collective
            raise PartError(fault or f"The estimator asks for {name!r}, and a row on another rank has no such list.")
        return self.ranks.gathered_tokens(local.to(self.ranks.device), -1 if name == "state_keys" else torch.nan)

    def _sequence_weights(self, rollout: Rollout, mask: Tensor) -> Tensor | None:
        """Weight (N,) of each trajectory in the configured loss; ``None`` where it is unknown before the loss."""
        if self.args.loss_type not in PER_SEQUENCE_MEAN | ONE_DENOMINATOR:
            return None
        ratio = None
        by_sequence = self.args.vllm_importance_sampling_mode.startswith("sequence")
        if by_sequence and self.ratio_comes_later:
            return None
        if by_sequence and "importance_sampling_ratio" in rollout.batch:
            ratio = self.ranks.gathered(rollout.batch["importance_sampling_ratio"].squeeze(1))
        return loss_sequence_weights(self.args.loss_type, mask.sum(1), ratio)
