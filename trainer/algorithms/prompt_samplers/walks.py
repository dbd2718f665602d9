"""Samplers that walk through all prompts, in a new random order for each walk."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.contract import PositiveShare

_WALKS_APART = 1_000_003

Levels = Annotated[list[int | str], Field(min_length=1)]


class uniform:  # noqa: N801 strategies are named as they are written in a run file
    """Every prompt once before any comes again, in a new random order each time.

    Chosen in a run it leaves TRL's own sampler as it is, bit for bit; the others of this file walk as it does. Prompts
    handed out together are different ones: where a walk ends within them, the next one puts off those that are among
    them already, to the next call. So no prompt is ever two visits ahead of another, however many are asked for.

    Source: TRL's RepeatSampler.
    Evidence: the trainer with it is stock TRL, weights equal bit for bit.
    """

    def __init__(self) -> None:
        self.walk, self.position = 0, 0
        self.put_off: list[int] = []

    def __call__(self, count: int, num_prompts: int, seed: int) -> list[int]:
        """The next ``count`` prompts; where a walk ends within them the next one begins."""
        return self._next(count, num_prompts, seed, lambda prompt: True)

    def _next(self, count: int, num_prompts: int, seed: int, wanted: Callable[[int], bool]) -> list[int]:
        """The next ``count`` different prompts that are ``wanted``; fewer where two walks find no further one."""
        owed = [prompt for prompt in self.put_off if wanted(prompt)]
        chosen, self.put_off = owed[:count], owed[count:]
        order, fruitless = self._order(num_prompts, seed), 0
        while len(chosen) < count and fruitless < 2 * num_prompts:
            if self.position == num_prompts:
                self.walk, self.position = self.walk + 1, 0
                order = self._order(num_prompts, seed)
            prompt = int(order[self.position])
            self.position += 1
            fruitless += 1
            if not wanted(prompt):
                continue
            if prompt not in chosen:
                chosen.append(prompt)
                fruitless = 0
            elif prompt not in self.put_off:
                self.put_off.append(prompt)
        return chosen

    def _order(self, num_prompts: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed * _WALKS_APART + self.walk)
        return torch.randperm(num_prompts, generator=generator)

    def state_dict(self) -> dict[str, Any]:
        """Where the walk is, and what it has put off."""
        return {"walk": self.walk, "position": self.position, "put_off": list(self.put_off)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there."""
        self.walk, self.position = int(state["walk"]), int(state["position"])
        self.put_off = [int(prompt) for prompt in state["put_off"]]


class dynamic(uniform):  # noqa: N801
    """Dynamic sampling: more prompts are generated until the batch is full of groups whose rewards differ.

    A group of equal rewards has no gradient. After each round the groups with one are kept and more prompts are drawn
    for those that miss, in at most ``max_rounds`` rounds; what still misses then is filled up with groups that have
    none, so that a batch never changes its size. Every generated token counts as cost (``num_tokens``); the logged
    rewards and lengths are those of the kept groups, ``prompt_sampler/reward`` and ``verifier/…`` are those of all.

    Source: DAPO, arXiv 2503.14476, section 3.2, equation 11.
    Evidence: properties (only live groups are kept, rounds are bounded, all is counted); the authors' code was not run.
    """

    def __init__(self, *, max_rounds: Annotated[int, Field(ge=1)] = 10) -> None:
        super().__init__()
        self.max_rounds = max_rounds


class curriculum(uniform):  # noqa: N801
    """Prompts of one level until enough of their responses are right, then those of the next.

    A prompt's level is its value of ``column`` in the training rows, compared with ``levels`` as text. Of each batch

        m ← ½ m + ½ mean share of right responses,        m = 0 where a level begins;

    at ``m ≥ up_at`` the next level begins, and the last one stays. A batch that a level cannot fill takes prompts of
    the nearest levels too, those first that have filled the fewest batches; they do not count in m.

    Source: Logic-RL (arXiv 2502.14768) for Knights & Knaves of 3 to 7 people; when to go up is this project's.
    Evidence: by hand, and a resumed run; nothing published was run.
    """

    def __init__(self, *, column: str, levels: Levels, up_at: PositiveShare) -> None:
        super().__init__()
        self.column, self.up_at = column, up_at
        self.levels = [*map(str, levels)]
        self.level, self.accuracy = 0, 0.0
        self.level_of: list[int] = []
        self.filled = Counter[int]()

    def read(self, rows: Any) -> None:
        """Take each prompt's level from the training ``rows``; a `PartError` if their column has other values."""
        known = self.column in rows.column_names
        values = [*map(str, rows[self.column] if known else ())]
        found = sorted({*values})
        if found != sorted(self.levels):
            what = f"levels are {self.levels}, and {self.column!r} of the rows has {found}."
            raise PartError(f"prompt_sampler 'curriculum': {what} Write each value once.")
        self.level_of = [*map(self.levels.index, values)]

    def __call__(self, count: int, num_prompts: int, seed: int) -> list[int]:
        """The next ``count`` prompts of the level."""
        chosen = self._next(count, num_prompts, seed, lambda each: not self._distance(each))
        if missing := count - len(chosen):
            of_level = {*chosen}
            others = [each for each in self._order(num_prompts, seed).tolist() if each not in of_level]
            others.sort(key=lambda each: (self._distance(each), self.filled[each]))
            self.filled.update(others[:missing])
            chosen += others[:missing]
        return chosen

    def observe(self, prompts: Tensor, solved: Tensor) -> None:
        """Go up if the level is solved; ``solved`` (P,): share of right responses to ``prompts`` (P,), NaN unscored."""
        of_level = [not self._distance(each) for each in prompts.tolist()]
        share = float(solved[of_level].nanmean())
        if share == share:
            self.accuracy = (self.accuracy + share) / 2
        if self.accuracy >= self.up_at and self.level + 1 < len(self.levels):
            self.level, self.accuracy = self.level + 1, 0.0
            self.walk, self.position, self.put_off = self.walk + 1, 0, []

    def state_dict(self) -> dict[str, Any]:
        """Where the walk is, on which level, the accuracy there, and how often each prompt has filled a batch."""
        filled = dict(self.filled)
        return {**super().state_dict(), "level": self.level, "accuracy": self.accuracy, "filled": filled}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there."""
        super().load_state_dict(state)
        self.level, self.accuracy = state["level"], state["accuracy"]
        self.filled = Counter({int(prompt): int(times) for prompt, times in state["filled"].items()})

    def _distance(self, prompt: int) -> int:
        return abs(self.level_of[prompt] - self.level) if self.level_of else 0


class unsolved(uniform):  # noqa: N801
    """Prompts that were solved are not asked again, until ``rest`` more walks have passed.

    Solved: at least ``threshold`` of the scored responses were right when it was last asked. Where fewer unsolved
    prompts are left than a batch needs, the longest-solved come back.

    Source: none; the plainest form of leaving out what has nothing left to teach.
    Evidence: properties (no solved prompt before its time, every unsolved one in each walk).
    """

    def __init__(self, *, threshold: PositiveShare = 1.0, rest: Annotated[int, Field(ge=1)] = 1000) -> None:
        super().__init__()
        self.threshold, self.rest = threshold, rest
        self.solved_in: dict[int, int] = {}

    def __call__(self, count: int, num_prompts: int, seed: int) -> list[int]:
        """The next ``count`` prompts that are not resting."""
        chosen = self._next(count, num_prompts, seed, self._awake)
        rested = sorted(self.solved_in, key=lambda one: (self.solved_in[one], one))
        others = [prompt for prompt in rested if prompt not in chosen]
        return chosen + others[: count - len(chosen)]

    def observe(self, prompts: Tensor, solved: Tensor) -> None:
        """Remember which ``prompts`` (P,) were solved; ``solved`` (P,): share of right responses, NaN unscored."""
        for prompt, share in zip(prompts.tolist(), solved.tolist(), strict=True):
            self.solved_in.pop(prompt, None)
            if share >= self.threshold:
                self.solved_in[prompt] = self.walk

    def state_dict(self) -> dict[str, Any]:
        """Where the walk is, and which prompts were solved in which walk."""
        return {**super().state_dict(), "solved_in": dict(self.solved_in)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there."""
        super().load_state_dict(state)
        self.solved_in = {int(prompt): int(walk) for prompt, walk in state["solved_in"].items()}

    def _awake(self, prompt: int) -> bool:
        return prompt not in self.solved_in or self.walk > self.solved_in[prompt] + self.rest
