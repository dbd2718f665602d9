"""What rounding of log-probabilities does to each strategy's update, while the policy has not moved.

Half precision gives the same token of the same policy another log-probability in another pass. Here each pass has noise
of its own, normal and independent from token to token, so that ``log π − log π_old`` of an unmoved policy has the
standard deviation s where it should be 0. Entropies have the same noise. The rollout batches are synthetic: groups of 8
responses of one length, right with probability 1/2; π_old in the four quarters of [0, 1] as often as in the measured
shares of arXiv 2505.12929 (19.2, 10.2, 10.1, 60.5 %), uniform in each; H the entropy of "this token or another one".

Compared is ``A · w · keep · c`` of all tokens, what multiplies ``∇log π``, with what it is without noise: the cosine of
the two, and the ratio of their norms. vLLM's correction (`engine_ratio`, bound 3) is compared with 1: there s is the
difference between engine and trainer, whose log ratio has the mean −s²/2 a token, since the engine has sampled.

What a CPU can measure of s is measured too: by how much bfloat16 changes log π between two policies that are nearly the
same. `log_prob_noise` puts noise into a real run.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer

from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.engine_ratio import engine_ratio
from evenkeel.trainer.algorithms.registry import built_in
from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.signals import estimator_signals, token_signals
from evenkeel.trainer.algorithms.strategies import Strategies, build_strategies
from evenkeel.trainer.run.config.shipped import CONFIGS

NOISES = (1e-3, 1e-2, 3e-2)
LENGTHS = (100, 1000, 8000)
GROUP_SIZE = 8
TOKENS = 1 << 21
"""Tokens of a rollout batch, 256 groups of it at most."""
STEPS = (1e-6, 1e-5, 1e-4)
POLICY = CONFIGS / "tiny_policy" / "countdown"
SHARES = (0.192, 0.102, 0.101, 0.605)
ALIKE = 5e-4
"""Numbers that differ from 1 by less are 1 in three digits."""

CASES: dict[str, dict[str, Any]] = {
    "disco": {ADVANTAGE: "disco"},
    "entropy_shaped": {ADVANTAGE: "entropy_shaped"},
    "gtpo": {ADVANTAGE: "gtpo"},
    "gtpo_conflict": {ADVANTAGE: "gtpo_conflict"},
    "otb": {ADVANTAGE: "otb"},
    "sdpo": {ADVANTAGE: "sdpo"},
    "unlikeliness": {ADVANTAGE: "unlikeliness"},
    "unlikeliness, length_normalised": {ADVANTAGE: {"name": "unlikeliness", "length_normalised": True}},
    "adv_reweight": {TOKEN_WEIGHT: "adv_reweight"},
    "rlsd": {TOKEN_WEIGHT: "rlsd"},
    "rlcsd": {TOKEN_WEIGHT: "rlcsd"},
    "low_probability_reweight": {TOKEN_WEIGHT: "low_probability_reweight"},
    "relative_surprisal": {TOKEN_WEIGHT: "relative_surprisal"},
    "clip_cov": {TOKEN_WEIGHT: "clip_cov"},
    "stapo": {TOKEN_WEIGHT: "stapo"},
    "top_entropy": {TOKEN_WEIGHT: "top_entropy"},
    "top_entropy, within: response": {TOKEN_WEIGHT: {"name": "top_entropy", "within": "response"}},
    "lopti": {UPDATE_SCHEDULE: "lopti"},
    "lopti, order: random": {UPDATE_SCHEDULE: {"name": "lopti", "order": "random"}},
    **{name: {COEFFICIENT: name} for name in ("importance_ratio", "symmetric_clip", "aspo", "sapo", "dppo")},
    "dppo, divergence: kl": {
        COEFFICIENT: {"name": "dppo", "divergence": "kl", "delta_low": 0.05, "delta_high": 0.05},
    },
    **{
        f"{name}, {option}: {form}": {COEFFICIENT: {"name": name, option: form}}
        for name, option, forms in (
            ("topr", "ratio", ("token", "geometric", "product")),
            ("trajectory_ratio", "weight", ("geometric", "product")),
            ("dfpo_min_replace", "weight", ("geometric", "product")),
            ("dfpo_orthogonal", "weight", ("geometric", "product")),
        )
        for form in forms
    },
    "vespo": {COEFFICIENT: "vespo"},
    "fipo": {COEFFICIENT: "fipo"},
    "real": {COEFFICIENT: "real"},
}
"""Every strategy that reads a log-probability or an entropy: shown name → what is given to `build_strategies`."""
CORRECTIONS = ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("--noises", type=float, nargs="+", default=NOISES, help="default %(default)s")
    command.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="default %(default)s")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The tables, in Markdown."""
    cells = [(noise, length) for length in options.lengths for noise in options.noises]
    found: dict[str, list[Effect]] = {name: [] for name in (*CASES, *CORRECTIONS)}
    for noise, length in cells:
        rounds = [effects(noise, length, seed) for seed in range(options.rounds)]
        for name in found:
            found[name].append(Effect.mean([each[name] for each in rounds]))
    head = [f"{length:,} × {noise:g}" for noise, length in cells]
    print(table("cosine / ratio of norms", head, {n: [e.shown for e in row] for n, row in found.items()}))
    shrunk = {name: row for name, row in found.items() if any(abs(e.mean_factor - 1) > ALIKE for e in row)}
    print(table("mean factor", head, {n: [f"{e.mean_factor:.3f}" for e in row] for n, row in shrunk.items()}))
    largest = max(remainder(noise, length, 0) for noise, length in cells)
    print(
        f"\nWith π_old taken from the training pass no coefficient changes a token's update by more than {largest:g}."
    )
    print(*("", *map(Rounding.of_an_update, STEPS)), sep="\n")
    untouched = [each for each in reads_no_log_probs() if each not in CASES]
    print(f"\nRead no log-probability and no entropy: {', '.join(f'`{name}`' for name in untouched)}.")
    return {name: [vars(each) for each in row] for name, row in found.items()}


@dataclass(frozen=True)
class Effect:
    """What noise does to an update.

    Attributes:
        cosine, norms: between it and the one without noise, over all tokens.
        mean_factor: what noise multiplies a token's update by, on average over the size of the exact one.
    """

    cosine: float
    norms: float
    mean_factor: float

    @classmethod
    def between(cls, noisy: Tensor, exact: Tensor) -> "Effect":
        """Of two updates (N, T)."""
        noisy, exact = noisy.double(), exact.double()
        product, own, other = (noisy * exact).sum(), exact.norm(), noisy.norm()
        cosine = product / (own * other)
        mean_factor = (noisy * exact.sign()).sum() / exact.abs().sum()
        return cls(cosine.item(), (other / own).item(), mean_factor.item())

    @classmethod
    def mean(cls, effects: Sequence["Effect"]) -> "Effect":
        """The mean of each number."""
        return cls(*(statistics.fmean(numbers) for numbers in zip(*(vars(e).values() for e in effects), strict=True)))

    @property
    def shown(self) -> str:
        """Both numbers, or "=" where both are 1."""
        shown = f"{self.cosine:.3f} / {self.norms:.3f}"
        return "=" if shown == "1.000 / 1.000" else shown


class SyntheticBatch:
    """A rollout batch of one length, as the module's docstring says, and its log-probabilities under noise."""

    def __init__(self, length: int, seed: int, *, groups: int | None = None) -> None:
        self.draws = torch.Generator().manual_seed(seed)
        groups = groups or max(1, min(256, TOKENS // (GROUP_SIZE * length)))
        rows = groups * GROUP_SIZE
        self.rewards = torch.randint(2, (rows,), generator=self.draws).float()
        self.mask = torch.ones(rows, length, dtype=torch.long)
        self.groups = torch.arange(rows) // GROUP_SIZE
        quarter = torch.multinomial(torch.tensor(SHARES), rows * length, replacement=True, generator=self.draws)
        probs = (quarter.view(rows, length) + torch.rand(rows, length, generator=self.draws)) / len(SHARES)
        self.logps = probs.clamp(1e-4, 1 - 1e-4).log()
        self.entropies = -(self.logps * self.logps.exp() + torch.log1p(-self.logps.exp()) * (1 - self.logps.exp()))

    def noise(self, size: float) -> Tensor:
        """Of one pass."""
        return size * torch.randn(self.logps.shape, generator=self.draws)

    def update(self, strategies: Strategies, logps: Tensor, old_logps: Tensor, entropies: Tensor) -> Tensor:
        """``A · w · keep · c`` (N, T) of the first pass."""
        common: dict[str, Any] = {"mask": self.mask, "completion_ids": self.mask, "step": 0, "max_steps": 1}
        common |= {"entropies": entropies, "teacher_logps": self.logps / 2}
        noise = old_logps - self.logps  # of two passes more, as of other rows
        common |= {"teacher_contrast": self.logps / 40 + noise.roll(1, 0) - noise.roll(2, 0)}
        of_estimators = estimator_signals(
            rewards_per_function=self.rewards[:, None],
            reward_weights=torch.ones(1),
            group_size=GROUP_SIZE,
            correct=self.rewards,
            old_logps=old_logps,
            sum_pi_squared=old_logps.exp() ** 2 + (1 - old_logps.exp()) ** 2,
            sequence_weights=None,
            turn_rewards=None,
            state_keys=None,
            **common,
        )
        advantages = update.advantages(strategies, of_estimators, "in a synthetic batch")
        keys = row_keys(len(self.rewards), 0)
        signals = token_signals(
            logps=logps,
            old_logps=old_logps,
            advantages=advantages,
            groups=self.groups,
            judged=torch.ones_like(self.rewards, dtype=torch.bool),
            row_keys=keys,
            **common,
        )
        keep = None
        if strategies.schedule.num_passes > 1:
            keep = strategies.schedule.kept(old_logps.exp(), self.mask, 0, keys)
        factors = update.token_factors(strategies, signals, "in a synthetic batch", keep=keep)
        weighted = factors.weighted(advantages)
        per_token = weighted if weighted.dim() == 2 else weighted[:, None].expand(self.mask.shape)
        return per_token if factors.coefficients is None else per_token * factors.coefficients


@cache
def built(name: str) -> Strategies:
    """Those of a case; each of its parts is tried once."""
    return build_strategies(**CASES[name])


def effects(noise: float, length: int, seed: int, names: Sequence[str] = (*CASES, *CORRECTIONS)) -> dict[str, Effect]:
    """Name → what noise of that size does to the update of one synthetic batch, π_old as it was scored."""
    batch = SyntheticBatch(length, seed)
    of_a_pass = noise / math.sqrt(2)
    scored, trained = (torch.clamp(batch.logps + batch.noise(of_a_pass), max=0.0) for _ in range(2))
    entropies = torch.clamp(batch.entropies + batch.noise(of_a_pass), min=0.0)
    engine_difference = batch.noise(noise) - noise**2 / 2
    found = {}
    for name in names:
        if name in CASES:
            strategies = built(name)
            exact = batch.update(strategies, batch.logps, batch.logps, batch.entropies)
            found[name] = Effect.between(batch.update(strategies, trained, scored, entropies), exact)
        else:
            ratio = engine_ratio(engine_difference, torch.zeros_like(batch.logps), batch.mask, name, None, 3.0)  # type: ignore[arg-type]
            found[name] = Effect.between(ratio.expand(batch.mask.shape), torch.ones(batch.mask.shape))
    return found


@dataclass(frozen=True)
class Rounding:
    """What bfloat16 autocast adds to the change of log π by a small update of the countdown policy, on the CPU.

    Attributes:
        step: what each weight is changed by, up or down.
        change: standard deviation of the change of a token's log π in float32.
        noise: the same of what the change in bfloat16 differs from that by.
        of_sums: standard deviation of that difference summed over a response of 96 tokens, as a multiple of
            ``noise · √96``: 1 where the tokens' rounding is independent.
    """

    step: float
    change: float
    noise: float
    of_sums: float

    def __str__(self) -> str:
        return (
            f"Each weight changed by {self.step:g}: log π changes by {self.change:.1e} a token in float32, and "
            f"bfloat16 adds {self.noise:.1e}; to the sum over 96 tokens {self.of_sums:.2f} · √96 times as much."
        )

    @classmethod
    @torch.no_grad()
    def of_an_update(cls, step: float, *, rows: int = 32, tokens: int = 96) -> "Rounding":
        """Of 32 responses that the policy samples after 8 random tokens; the update is a random sign a weight."""
        policy: Any = AutoModelForCausalLM.from_pretrained(POLICY, dtype=torch.float32).eval()
        draws = torch.Generator().manual_seed(0)
        ids = torch.randint(5, policy.config.vocab_size, (rows, 8), generator=draws)
        for _ in range(tokens):
            probs = policy(input_ids=ids).logits[:, -1].softmax(-1)
            ids = torch.cat([ids, probs.multinomial(1, generator=draws)], dim=1)

        def scored(in_half: bool) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16, enabled=in_half):
                logits = policy(input_ids=ids).logits[:, 7:-1]
            return logits.float().log_softmax(-1).gather(2, ids[:, 8:, None]).squeeze(2)

        before = scored(False), scored(True)
        for parameter in policy.parameters():
            parameter += step * torch.randn(parameter.shape, generator=draws).sign()
        change = scored(False) - before[0]
        noise = scored(True) - before[1] - change
        of_sums = noise.sum(1).std() / (noise.std() * math.sqrt(tokens))
        return cls(step, change.std().item(), noise.std().item(), of_sums.item())


def remainder(noise: float, length: int, seed: int) -> float:
    """What noise leaves of a coefficient's update where π_old is taken from the training pass: the largest difference.

    That pass's log-probabilities are noisy as above; advantages are `grpo`'s.
    """
    batch, found = SyntheticBatch(length, seed, groups=4), [0.0]
    trained = torch.clamp(batch.logps + batch.noise(noise), max=0.0)
    for strategies in (built(name) for name, case in CASES.items() if COEFFICIENT in case):
        exact = batch.update(strategies, batch.logps, batch.logps, batch.entropies)
        difference = batch.update(strategies, trained, trained, batch.entropies) - exact
        found.append(difference.abs().max().item())
    return max(found)


def reads_no_log_probs() -> list[str]:
    """Built-in advantages, token weights, coefficients and schedules that no noise reaches, by name."""
    named = {name.partition(",")[0] for name in CASES}
    kinds = (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE)
    return [name for kind in kinds for name in sorted(built_in(kind)) if name not in named]


def table(title: str, head: Sequence[str], rows: dict[str, list[str]]) -> str:
    """Markdown."""
    lines = [[title, *head], ["---"] * (1 + len(head)), *([f"`{name}`", *cells] for name, cells in rows.items())]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@contextmanager
def log_prob_noise(size: float, seed: int = 0) -> Iterator[None]:
    """Inside, every pass of TRL's trainers, and of ours, rounds: normal noise, so that two passes differ by ``size``.

    Each call of TRL's log-probability hook draws its own, on the CPU; the gradient is that without noise.
    """
    draws = torch.Generator().manual_seed(seed)
    exact: Callable[..., Any] = GRPOTrainer._get_per_token_logps_and_entropies

    def noisy(trainer: Any, *positional: Any, **keywords: Any) -> Any:
        logps, *others = exact(trainer, *positional, **keywords)
        drawn = torch.randn(logps.shape, generator=draws).to(logps) * (size / math.sqrt(2))
        return logps + drawn, *others

    GRPOTrainer._get_per_token_logps_and_entropies = noisy
    try:
        yield
    finally:
        GRPOTrainer._get_per_token_logps_and_entropies = exact
