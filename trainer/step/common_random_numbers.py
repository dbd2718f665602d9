"""TRL's trainer with sampling noise that runs have in common, so that variants differ only where their policies do."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from trainer.algorithms.keyed_noise import keyed_draw, row_key
from trainer.step.compact_generation import Draw
from trainer.step.compatibility import PreflightError
from trainer.step.evaluating_trainer import EvaluatingTrainer
from trainer.step.rollout_batches import rollout_number

EVALUATION = -1
"""In place of a rollout batch's number: every evaluation of a run draws with the same noise."""


class CommonRandomNumbersTrainer(EvaluatingTrainer):
    """`EvaluatingTrainer` whose every sampled token is a function of the policy and of where the token stands.

    The noise of a token is made of the run's seed, the number of the rollout batch, the prompt's tokens, which of the
    prompt's samples in that batch it is, and its position (see `keyed_draw`). It does not depend on how batches are
    cut, on the number of processes, on padding, or on what was drawn before; but a prompt's samples are numbered as
    they come, those included that only fill up a rank's share, and an evaluation's greedy ones.

    Args:
        common_random_numbers: whether; without, tokens come from torch's stream as TRL's do. Needs
            ``generation="compact"``, where the drawing is ours.

    Raises:
        PreflightError: without compact generation; with tools, environments or a rollout function.
    """

    _common = False

    def __init__(self, *positional: Any, common_random_numbers: bool = False, **keywords: Any) -> None:
        self._common = common_random_numbers
        self._batch: int | None = None
        self._drawn: Counter[int] = Counter()  # prompt's key → its samples in that batch so far, of all ranks
        if common_random_numbers and keywords.get("generation") != "compact":
            raise PreflightError(
                "common_random_numbers: tokens are drawn by noise of our own, which vLLM and TRL's generation do not "
                'take. Write generation="compact" (in a run file `speed: {generation: compact}`) with transformers, '
                "or leave common_random_numbers out."
            )
        super().__init__(*positional, **keywords)
        own = [name for name in ("tools", "environment_factories", "rollout_func") if getattr(self, name, None)]
        if common_random_numbers and own:
            raise PreflightError(
                f"common_random_numbers with {own[0]}: a sample is known by its place among those of its prompt, and "
                f"there turns of their own number are generated on each rank. Leave one of the two out."
            )

    def evaluate(self, *positional: Any, **keywords: Any) -> dict[str, float]:
        self._batch = None
        metrics: dict[str, float] = super().evaluate(*positional, **keywords)
        return metrics

    def _draw(self, prompt_ids: Sequence[Sequence[int]]) -> Draw | None:
        if not self._common:
            return super()._draw(prompt_ids)
        batch = rollout_number(self) if self.model.training else EVALUATION
        if batch != self._batch:
            self._batch, self._drawn = batch, Counter()
        prompts: list[list[int]] = gather_object([[row_key(0, 0, ids, 0) for ids in prompt_ids]])
        mine = []
        for rank, rows in enumerate(prompts):
            for row, prompt in enumerate(rows):
                if rank == self.accelerator.process_index:
                    mine.append(row_key(self.args.seed, batch, prompt_ids[row], self._drawn[prompt]))
                self._drawn[prompt] += 1
        keys = torch.tensor(mine, device=self.accelerator.device)

        def draw(probs: Tensor, rows: Tensor, position: int) -> Tensor:
            return keyed_draw(probs, keys[rows], position)

        return draw
