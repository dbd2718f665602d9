"""Which prompts the next rollout batch holds, generated again where a sampler asks for groups with a gradient."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object
from torch import Tensor

from evenkeel.trainer.algorithms.contract import naming
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.results import checked_prompts, max_rounds
from evenkeel.trainer.algorithms.signals import weighted_sum
from evenkeel.trainer.step.metrics import AREA, completion_lengths, written_tokens
from evenkeel.trainer.step.setup import Position, Row, Setup

_RECORDED = ("prompt", "prompt_ids", "completion_ids", "tool_mask", "completion", "logps")
"""A row's prompt and the first results of TRL's ``_generate``, in their order."""
_LIKELY_ALIVE = 0.25
"""Lower bound of the assumed share of live groups: a round asks for at most four times the missing prompts."""


class Generations(NamedTuple):
    """Completions of some rows of this rank, with their rewards.

    Attributes:
        prompts: as passed to TRL's ``_generate``, with text that environments added.
        generated: its result.
        rewards: (N, F) of all ranks.
        columns: columns that this rank's reward functions logged: name → one value a row.
    """

    prompts: list[Any]
    generated: tuple[Any, ...]
    rewards: Tensor
    columns: dict[str, list[Any]]


Answer = Callable[[list[Row]], Generations]
"""Generates and scores completions of rows of this rank; a collective."""


@dataclass
class Candidates:
    """Groups generated so far, the same on all ranks: (prompt, records of its rows, rewards (G, F)) of each."""

    alive: list[tuple[int, list[Row], Tensor]] = field(default_factory=list)
    dead: list[tuple[int, list[Row], Tensor]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    rounds: int = 0

    @property
    def count(self) -> int:
        return len(self.alive) + len(self.dead)


class Prompts:
    """The rows of each rollout batch: those of the prompts that ``sampler`` chooses, or TRL's.

    With a sampler of several rounds the rows are generated and scored first, and TRL is given those that are kept.
    Metrics are of the kept rows; ``verifier/…``, ``environment/…``, ``tools/…``, ``num_tokens`` and
    ``prompt_sampler/reward`` are of all that was generated.

    Args:
        data: the training rows by position; read only where there is a sampler.
    """

    def __init__(self, setup: Setup, data: Any) -> None:
        self.sampler, self.data, self.ranks = setup.strategies.prompt_sampler, data, setup.ranks
        self.group_size, self.seed = setup.args.num_generations, setup.args.seed
        self.reward_weights, self.ends = setup.reward_weights, setup.ends
        setup.strategies.read(data)
        self.chosen: list[int] = []
        """The prompts of the newest rollout batch, of all ranks."""
        self.has_rounds = bool(setup.settings.several_rounds)
        """Whether rows are generated and scored before they are chosen."""
        self._kept: Generations | None = None

    def rows(
        self, given: list[Row], position: Position, answer: Answer, metrics: Mapping[str, list[float]]
    ) -> list[Row]:
        """This rank's rows of the next rollout batch, in place of ``given``, TRL's."""
        sampler, self._kept = self.sampler, None
        if sampler is None:
            return given
        wanted = len(given) * self.ranks.count // self.group_size
        if self.has_rounds:
            self._keep_live_groups(sampler, wanted, position, answer, metrics)
        else:
            self.chosen = self._next_prompts(sampler, wanted, position)
        if hasattr(sampler.function, "level"):
            metrics["prompt_sampler/level"].append(float(sampler.function.level))
        rows = self._rows_of(self.chosen)
        if self._kept is not None:
            rows = [{**row, "prompt": prompt} for row, prompt in zip(rows, self._kept.prompts, strict=True)]
        return rows

    @contextmanager
    def serving_kept_rollout(self) -> Iterator[bool]:
        """Inside, TRL is given the completions and rewards of kept rows, if any; dropped on exit."""
        try:
            yield self._kept is not None
        finally:
            self._kept = None

    def take_generated(self) -> tuple[Any, ...] | None:
        """Completions of the kept rows, as ``_generate`` returned them; ``None`` where there are none."""
        return None if self._kept is None else self._kept.generated

    def take_rewards(self, logged: Mapping[str, list[Any]]) -> Tensor | None:
        """The rewards (N, F) of the kept rows, with their columns added to ``logged``; ``None`` where none are kept."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        for name, values in kept.columns.items():
            logged[name].extend(values)
        return kept.rewards

    def observe(self, correct: Callable[[], Tensor | None]) -> None:
        """Report each prompt's share of right responses to the sampler; NaN where no response was scored.

        Args:
            correct: (N,) verdicts, asked for only where the sampler wants them.

        Raises:
            ValueError: it wants them, and the reward functions leave no verdicts.
        """
        if self.sampler is None or not hasattr(self.sampler.function, "observe"):
            return
        if (verdicts := correct()) is None:
            raise ValueError(
                f"prompt_sampler {self.sampler.name!r} needs a verdict on each completion: let a reward function call "
                "log_extra('correct', [True, False, None, …])."
            )
        shares = verdicts.view(-1, self.group_size).nanmean(1).cpu()
        with naming(f"{self.sampler.kind} {self.sampler.name!r}"):
            self.sampler.function.observe(torch.tensor(self.chosen), shares)

    def _next_prompts(self, sampler: Strategy, count: int, position: Position) -> list[int]:
        signals = {"count": count, "num_prompts": len(self.data), "seed": self.seed}
        return checked_prompts(sampler, sampler(signals), count, len(self.data), position.where)

    def _rows_of(self, prompts: list[int]) -> list[Row]:
        """This rank's share of the rows of ``prompts``, each as often as TRL repeats it."""
        everyone = [prompt for prompt in prompts for _ in range(self.group_size)]
        return [dict(self.data[prompt]) for prompt in self.ranks.own_share(everyone)]

    def _keep_live_groups(
        self, sampler: Strategy, wanted: int, position: Position, answer: Answer, metrics: Mapping[str, list[float]]
    ) -> None:
        """Choose ``wanted`` prompts, alive as far as the sampler's rounds find them, and keep what was generated."""
        found = Candidates()
        while len(found.alive) < wanted and found.rounds < max_rounds(sampler):
            self._add_round(self._next_prompts(sampler, self._asked(found, wanted), position), answer, found)
        kept = (found.alive + found.dead)[:wanted]
        everyones = [record for _, group, _ in kept for record in group]
        self._log(found, wanted, everyones, metrics)
        self.chosen = [prompt for prompt, _, _ in kept]
        records = self.ranks.own_share(everyones)
        prompts, ids, completion_ids, marks, completions, logps = (
            [record[name] for record in records] for name in _RECORDED
        )
        tool_mask, sampled = (None if any(each is None for each in values) else values for values in (marks, logps))
        names = sorted({name for record in everyones for name in record["columns"]})
        columns = {name: [record["columns"].get(name) for record in records] for name in names}
        # as TRL's _generate returns it
        generated: tuple[Any, ...] = (ids, completion_ids, tool_mask, completions, sampled, {}, None, [])
        self._kept = Generations(prompts, generated, torch.cat([rewards for _, _, rewards in kept]), columns)

    def _asked(self, found: Candidates, wanted: int) -> int:
        """Number of prompts of the next round: those missing over the share of live groups so far, even over ranks."""
        if found.rounds == 0:
            return wanted
        rate = max(len(found.alive) / found.count, _LIKELY_ALIVE)
        asked = min(wanted, ceil((wanted - len(found.alive)) / rate))
        while asked * self.group_size % self.ranks.count:
            asked += 1
        return asked

    def _add_round(self, prompts: list[int], answer: Answer, found: Candidates) -> None:
        """Generate and score the rows of ``prompts`` on all ranks, and add their groups to ``found``."""
        texts, generated, rewards, columns = answer(self._rows_of(prompts))
        recorded = dict(zip(_RECORDED, (texts, *generated), strict=False))
        records = gather_object(
            [
                {name: None if each is None else each[row] for name, each in recorded.items()}
                | {"columns": {name: each[row] for name, each in columns.items()}}
                for row in range(len(texts))
            ]
        )
        total, size = weighted_sum(rewards, self.reward_weights), self.group_size
        dead = dead_groups(total, size)[::size].tolist()
        groups = [records[start : start + size] for start in range(0, len(records), size)]
        for prompt, group, rewarded, is_dead in zip(prompts, groups, rewards.split(size), dead, strict=True):
            (found.dead if is_dead else found.alive).append((prompt, group, rewarded))
        found.rewards += total[~total.isnan()].tolist()
        found.rounds += 1

    def _log(self, found: Candidates, wanted: int, kept: list[Row], metrics: Mapping[str, list[float]]) -> None:
        """Log ``prompt_sampler/…``, and replace TRL's ``completions/…``, one value for each round, by those of the kept
        rows."""
        metrics["prompt_sampler/rounds"].append(float(found.rounds))
        metrics["prompt_sampler/generated_per_trained"].append(found.count / wanted)
        metrics["prompt_sampler/frac_live"].append(len(found.alive) / found.count)
        if found.rewards:
            metrics["prompt_sampler/reward"].append(sum(found.rewards) / len(found.rewards))
        for name in [name for name in metrics if name.startswith(AREA)]:
            del metrics[name][max(0, len(metrics[name]) - found.rounds) :]
        ids, masks = ([record[name] for record in kept] for name in ("completion_ids", "tool_mask"))
        lengths = torch.tensor(written_tokens(ids, masks))
        truncated = torch.tensor([each[-1] not in self.ends for each in ids])
        for name, value in completion_lengths(lengths, truncated).items():
            metrics[name].append(value)
