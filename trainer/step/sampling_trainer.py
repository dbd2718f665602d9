"""TRL's trainer with prompts that a sampler chooses, generated again where it asks for groups with a gradient."""

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from trainer.algorithms.completion_lengths import AREA, completion_lengths
from trainer.algorithms.contract import naming
from trainer.algorithms.groups import dead_groups
from trainer.algorithms.registry import Strategy
from trainer.algorithms.results import checked_prompts, max_rounds
from trainer.algorithms.strategies import Strategies
from trainer.step.common_random_numbers import CommonRandomNumbersTrainer
from trainer.step.compatibility import PreflightError
from trainer.step.rollout_signals import weighted_sum
from trainer.step.signals import Signals

Row = dict[str, Any]
_LIKELY_ALIVE = 0.25
"""A round asks for at most four times as many prompts as miss."""


@dataclass
class Kept:
    """What was generated and judged before TRL asks for it: this rank's rows, and the rewards (N, F) of all."""

    generated: tuple[Any, ...]
    rewards: Tensor
    columns: dict[str, list[Any]]


@dataclass
class Candidates:
    """Groups generated so far, on all ranks alike: each its prompt, the records of its rows, its rewards (G, F)."""

    alive: list[tuple[int, list[Row], Tensor]] = field(default_factory=list)
    dead: list[tuple[int, list[Row], Tensor]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    rounds: int = 0

    @property
    def count(self) -> int:
        return len(self.alive) + len(self.dead)


class SamplingTrainer(CommonRandomNumbersTrainer):
    """`CommonRandomNumbersTrainer` whose rollout batches hold the prompts that ``strategies.prompt_sampler`` chooses.

    TRL's own sampler goes on counting steps and epochs; its rows are replaced. With a sampler of several rounds the
    rows are generated and judged first, and TRL is handed those that are kept: π_old and the reference are computed for
    them alone, and every completion is judged once.

    Metrics are of what is trained, the kept rows: ``reward``, ``rewards/…``, ``completions/…``, ``groups/…``. Of all
    that was generated, kept or not, are those of the verifiers, which measure judging (``verifier/…``), ``num_tokens``
    and ``prompt_sampler/reward``.

    Raises:
        PreflightError: several rounds with tools, environments or a rollout function; data without positions.
    """

    strategies: Strategies
    _pending_extra_logs: dict[str, list[Any]]
    _kept: Kept | None = None

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        self._chosen: list[int] = []  # the prompts of the newest rollout batch, of all ranks
        super().__init__(*positional, **keywords)
        sampler = self.strategies.prompt_sampler
        if sampler is None:
            return
        if not hasattr(self.train_dataset, "__len__"):
            raise PreflightError(
                f"prompt_sampler {sampler.name!r} chooses rows by their position, and streamed data has none. Load the "
                "data whole, or leave prompt_sampler out."
            )
        own = [name for name in ("tools", "environment_factories", "rollout_func") if getattr(self, name, None)]
        if own and max_rounds(sampler) > 1:
            raise PreflightError(
                f"prompt_sampler {sampler.name!r} with {own[0]}: what is generated in several rounds is one plain "
                f"completion a row. Leave prompt_sampler or {own[0]} out."
            )

    def _rows_to_roll_out(self, inputs: list[Row]) -> list[Row]:
        """This rank's rows of the next rollout batch: ``inputs``, TRL's, or those of the sampler's prompts."""
        sampler = self.strategies.prompt_sampler
        if sampler is None:
            return inputs
        wanted = len(inputs) * self.accelerator.num_processes // self.num_generations
        if max_rounds(sampler) == 1:
            self._chosen = self._next_prompts(sampler, wanted)
            return self._rows_of(self._chosen)
        return self._live_rows(sampler, wanted, max_rounds(sampler))

    def _tell_sampler(self, signals: Signals) -> None:
        """Tell the sampler the share of right responses to each prompt; NaN where nobody could judge one.

        Raises:
            ValueError: it wants to know, and the reward functions leave no verdicts.
        """
        sampler = self.strategies.prompt_sampler
        if sampler is None or not hasattr(sampler.function, "observe"):
            return
        correct = signals["correct"]
        if correct is None:
            raise ValueError(
                f"prompt_sampler {sampler.name!r} goes by the share of right responses, and the reward functions leave "
                "no verdict on each completion in the column `correct`. Rewards made of verifiers leave it; a function "
                "of your own calls log_extra('correct', [True, False, None, …])."
            )
        shares = correct.view(-1, self.num_generations).nanmean(1).cpu()
        with naming(f"{sampler.kind} {sampler.name!r}"):
            sampler.function.observe(torch.tensor(self._chosen), shares)

    def _next_prompts(self, sampler: Strategy, count: int) -> list[int]:
        signals = {"count": count, "num_prompts": len(self.train_dataset), "seed": self.args.seed}
        where = f"at optimizer step {self.state.global_step}"
        return checked_prompts(sampler, sampler(signals), count, len(self.train_dataset), where)

    def _rows_of(self, prompts: list[int]) -> list[Row]:
        """This rank's share of the rows of ``prompts``, each as often as TRL repeats it."""
        everyone = [prompt for prompt in prompts for _ in range(self.num_generations)]
        return [dict(self.train_dataset[prompt]) for prompt in self._share(everyone)]

    def _share(self, rows: list[Any]) -> list[Any]:
        each = len(rows) // self.accelerator.num_processes
        return rows[self.accelerator.process_index * each :][:each]

    def _live_rows(self, sampler: Strategy, wanted: int, rounds: int) -> list[Row]:
        """The rows of ``wanted`` prompts, alive as far as ``rounds`` find them, generated and judged."""
        found = Candidates()
        logged = {name: len(values) for name, values in self._metrics["train"].items() if name.startswith(AREA)}
        while len(found.alive) < wanted and found.rounds < rounds:
            self._generate_round(self._next_prompts(sampler, self._asked(found, wanted)), found)
        kept = (found.alive + found.dead)[:wanted]
        self._log_sampling(found, wanted)
        self._log_lengths([record for _, group, _ in kept for record in group], logged)
        self._chosen = [prompt for prompt, _, _ in kept]
        records = self._share([record for _, group, _ in kept for record in group])
        ids, completion_ids, completions, logps = (
            [record[name] for record in records] for name in ("prompt_ids", "completion_ids", "completion", "logps")
        )
        sampled = None if any(each is None for each in logps) else logps
        names = sorted({name for _, group, _ in kept for record in group for name in record["columns"]})
        columns = {name: [record["columns"].get(name) for record in records] for name in names}
        # as TRL's _generate returns it
        generated: tuple[Any, ...] = (ids, completion_ids, None, completions, sampled, {}, None, [])
        self._kept = Kept(generated, torch.cat([rewards for _, _, rewards in kept]), columns)
        return self._rows_of(self._chosen)

    def _asked(self, found: Candidates, wanted: int) -> int:
        """Prompts of the next round: as many as miss, by the share of live groups so far; equally many on all ranks."""
        if found.rounds == 0:
            return wanted
        rate = max(len(found.alive) / found.count, _LIKELY_ALIVE)
        asked = min(wanted, ceil((wanted - len(found.alive)) / rate))
        while asked * self.num_generations % self.accelerator.num_processes:
            asked += 1
        return asked

    def _generate_round(self, prompts: list[int], found: Candidates) -> None:
        """Generate and judge the rows of ``prompts`` on all ranks, and sort their groups."""
        rows = self._rows_of(prompts)
        texts = [row["prompt"] for row in rows]
        prompt_ids, completion_ids, _, completions, logps, *_ = self._generate(texts)
        rewards = self._calculate_rewards(rows, texts, completions, completion_ids)
        columns = {name: each for name, each in self._pending_extra_logs.items() if len(each) == len(rows)}
        self._pending_extra_logs = defaultdict(list)
        records = gather_object(
            [
                {
                    "prompt_ids": prompt_ids[row],
                    "completion_ids": completion_ids[row],
                    "completion": completions[row],
                    "logps": None if logps is None else logps[row],
                    "columns": {name: each[row] for name, each in columns.items()},
                }
                for row in range(len(rows))
            ]
        )
        total = weighted_sum(rewards, self.reward_weights)
        dead = dead_groups(total, self.num_generations)[:: self.num_generations].tolist()
        size = self.num_generations
        groups = [records[start : start + size] for start in range(0, len(records), size)]
        for prompt, group, rewarded, is_dead in zip(prompts, groups, rewards.split(size), dead, strict=True):
            (found.dead if is_dead else found.alive).append((prompt, group, rewarded))
        found.rewards += total[~total.isnan()].tolist()
        found.rounds += 1

    def _log_sampling(self, found: Candidates, wanted: int) -> None:
        metrics = self._metrics["train"]
        metrics["prompt_sampler/rounds"].append(float(found.rounds))
        metrics["prompt_sampler/generated_per_trained"].append(found.count / wanted)
        metrics["prompt_sampler/frac_live"].append(len(found.alive) / found.count)
        if found.rewards:
            metrics["prompt_sampler/reward"].append(sum(found.rewards) / len(found.rewards))

    def _log_lengths(self, kept: list[Row], logged: dict[str, int]) -> None:
        """``completions/…`` of the kept rows in place of one number for each round, of all that it generated."""
        metrics = self._metrics["train"]
        for name in [name for name in metrics if name.startswith(AREA)]:
            del metrics[name][logged.get(name, 0) :]
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        ids = [record["completion_ids"] for record in kept]
        lengths = torch.tensor([len(each) for each in ids])
        truncated = torch.tensor([each[-1] not in ends for each in ids])
        for name, value in completion_lengths(lengths, truncated).items():
            metrics[name].append(value)

    def _generate(self, prompts: list[Any]) -> Any:
        """What was generated for the kept rows, where there are such; TRL's own generation elsewhere."""
        return super()._generate(prompts) if self._kept is None else self._kept.generated

    def _calculate_rewards(self, *positional: Any, **keywords: Any) -> Tensor:
        kept, self._kept = self._kept, None
        if kept is None:
            rewards: Tensor = super()._calculate_rewards(*positional, **keywords)
            return rewards
        for name, values in kept.columns.items():
            self._pending_extra_logs[name].extend(values)
        return kept.rewards
