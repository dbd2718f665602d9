"""Samplers that draw prompts by how often they were solved so far."""

from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.contract import PositiveShare


class difficulty:  # noqa: N801 strategies are named as they are written in a run file
    """Prompts are drawn in proportion to the variance p (1 − p) of their running pass rate p.

    The gradient of an expected reward of 0 or 1 vanishes with that variance: what is always or never solved has little
    to teach. A prompt that has not been asked yet counts as p = ½, so that all are tried first. Weights:

        w = explore + (1 − explore) · 4 p (1 − p),        p ← (1 − newest) · p + newest · share of right responses

    and ``count`` different prompts are drawn without replacement (the largest log(w) + Gumbel noise).

    Source: learnability of arXiv 2502.12272 (p (1 − p)); running rate and floor are this project's.
    Evidence: frequencies of draws against the weights; nothing published was run.
    """

    def __init__(self, *, newest: PositiveShare = 0.5, explore: PositiveShare = 0.05) -> None:
        self.newest, self.explore = newest, explore
        self.draws = 0
        self.pass_rates: dict[int, float] = {}

    def __call__(self, count: int, num_prompts: int, seed: int) -> list[int]:
        """``count`` different prompts."""
        rates = torch.full((num_prompts,), 0.5, dtype=torch.float64)
        for prompt, rate in self.pass_rates.items():
            rates[prompt] = rate
        weights = self.explore + (1 - self.explore) * 4 * rates * (1 - rates)
        generator = torch.Generator().manual_seed(seed * 1_000_003 + self.draws)
        noise = torch.rand(num_prompts, generator=generator, dtype=torch.float64).log().neg().log().neg()
        self.draws += 1
        drawn: list[int] = (weights.log() + noise).topk(count).indices.tolist()
        return drawn

    def observe(self, prompts: Tensor, solved: Tensor) -> None:
        """Move the rates of ``prompts`` (P,) toward ``solved`` (P,), the share of right responses; NaN unscored."""
        for prompt, share in zip(prompts.tolist(), solved.tolist(), strict=True):
            # NaN: no response of the group was scored
            if share == share:
                before = self.pass_rates.get(prompt, share)
                self.pass_rates[prompt] = (1 - self.newest) * before + self.newest * share

    def state_dict(self) -> dict[str, Any]:
        """The pass rates so far, and how many draws there were."""
        return {"draws": self.draws, "pass_rates": dict(self.pass_rates)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there."""
        self.draws = int(state["draws"])
        self.pass_rates = {int(prompt): float(rate) for prompt, rate in state["pass_rates"].items()}
