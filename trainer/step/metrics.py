"""Metrics of a step. Sums stay on the device and are reduced over the ranks once, when they are logged."""

import math
from collections.abc import Mapping, MutableMapping, Sequence
from itertools import islice
from typing import Any

import torch
import trl.trainer.utils as trl_utils
from jaxtyping import Bool, Int
from torch import Tensor

from evenkeel.trainer.algorithms import diagnostics
from evenkeel.trainer.algorithms.groups import dead_groups
from evenkeel.trainer.step.rollout import loss_mask

_CLIPPED = frozenset({"cispo_clip_ratio"} | {f"clip_ratio/{name}_mean" for name in ("low", "high", "region")})
_TOKEN_MEANS = frozenset({"entropy", "kl", "vespo/phi_seq_mean"}) | _CLIPPED
"""TRL's metrics that are means over the tokens of a micro-batch of all ranks."""
_EXTREMES = ("clip_ratio/low_min", "clip_ratio/high_max")
"""TRL's metrics that are extremes over the rows of a micro-batch of all ranks."""

AREA = "completions/"


class Means:
    """Means and maxima of the values added since the last `read`; all ranks must add the same names.

    Values that are not finite are not counted: the guards skip such an optimizer step. Nothing is copied from or to the
    device before `read`.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        """Name → (total, count); ``<name>*`` → the parts of a whole."""
        self._largest: dict[str, Tensor] = {}

    def add(self, name: str, total: Tensor, count: Tensor | float) -> None:
        """Add ``total``, the sum of ``count`` values."""
        counted = count if isinstance(count, Tensor) else total.new_full((), count)
        self._accumulate(name, torch.stack((total.detach().double(), counted.double())))

    def add_tokens(self, name: str, values: Tensor, mask: Tensor) -> None:
        """Add the ``values`` (B, T) of tokens that ``mask`` counts."""
        self.add(name, (values * mask).sum(), mask.sum())

    def add_shares(self, name: str, sums: Tensor) -> None:
        """Add the parts of a whole, ``sums`` (bins,): their shares become ``name1`` … ``nameN``."""
        self._accumulate(f"{name}*", sums.double())

    def add_largest(self, name: str, value: Tensor) -> None:
        """Add ``value``, a scalar, to a maximum."""
        self._largest[name] = value.fmax(self._largest[name]) if name in self._largest else value

    def read(self, accelerator: Any) -> dict[str, float]:
        """The means and maxima over all ranks, without those of no values; then empty. A collective."""
        found: dict[str, float] = {}
        if self._sums:
            names = sorted(self._sums)
            sizes = [len(self._sums[name]) for name in names]
            numbers = iter(accelerator.reduce(torch.cat([self._sums[name] for name in names]), "sum").tolist())
            for name, size in zip(names, sizes, strict=True):
                found |= _mean(name, list(islice(numbers, size)))
        if self._largest:
            largest = accelerator.gather(torch.stack([*self._largest.values()])[None]).amax(0).tolist()
            found |= dict(zip(self._largest, largest, strict=True))
        self._sums, self._largest = {}, {}
        return found

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """The values that this rank has added since the last `read`."""
        return {
            "sums": {name: values.cpu() for name, values in self._sums.items()},
            "largest": {name: value.cpu() for name, value in self._largest.items()},
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Tensor]], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        self._sums = {name: values.to(device) for name, values in state["sums"].items()}
        self._largest = {name: values.to(device) for name, values in state.get("largest", {}).items()}

    def _accumulate(self, name: str, sums: Tensor) -> None:
        sums = sums.masked_fill(~sums.isfinite().all(), 0.0)
        self._sums[name] = self._sums[name] + sums if name in self._sums else sums


def _mean(name: str, sums: list[float]) -> dict[str, float]:
    """The metrics of one entry of `Means`: a mean, or shares of a whole; none where nothing was counted."""
    if not name.endswith("*"):
        return {name: sums[0] / sums[1]} if sums[1] > 0 else {}
    whole = sum(sums)
    return {f"{name[:-1]}{index + 1}": part / whole for index, part in enumerate(sums)} if whole > 0 else {}


class Throughput:
    """What one device does in a second of a step's wall time, over all ranks: ``perf/…`` of a `Means`.

    ``generated_tokens_per_second`` counts what the policy sampled for training, ``trained_…`` prompts and completions
    of the trained micro-batches. ``mfu`` (%) is 6 FLOPs a weight and token, and attention over whole rows, over
    the peak of the devices in the seconds of the update; not logged where TRL does not know the model or device.
    """

    def __init__(self, config: Any, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.generated, self.peak = device, 0, None
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
        try:
            self._fixed, with_one = (trl_utils.compute_flops_per_token(config, length) for length in (0, 1))
            self._attention = with_one - self._fixed  # FLOPs a token, for each token of its row
            self.peak = trl_utils.get_peak_flops(name, str(dtype).removeprefix("torch."))
        except Exception:  # noqa: BLE001 TRL knows some models, and releases of it other ones
            return

    def trained(self, means: Means, batch: Mapping[str, Any]) -> None:
        """Count a micro-batch."""
        lengths = (batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)).double()
        means.add("perf/trained_tokens_per_second", lengths.sum(), 0.0)
        if self.peak is not None:
            flops = (lengths * (self._fixed + self._attention * lengths)).sum()
            means.add("perf/mfu", 100 * flops / self.peak, 0.0)

    def end_step(self, means: Means, seconds: Mapping[str, float]) -> None:
        """Count the seconds of an optimizer step: ``timing/<phase>_s`` of `Phases`."""
        generated, self.generated = self.generated, 0
        for kind, tokens in (("generated", generated), ("trained", 0)):
            total = torch.tensor(float(tokens), device=self.device)
            means.add(f"perf/{kind}_tokens_per_second", total, sum(seconds.values()))
        if self.peak is not None:
            means.add("perf/mfu", torch.tensor(0.0, device=self.device), seconds["timing/update_s"])


class SharedPrefixMeter:
    """Measures how far the contributions of tokens that a whole group shares are from canceling in an optimizer step.

    A token's contribution c is the loss's gradient with respect to its log-probability, read while the gradient flows.
    For every group and every position of the prefix that its responses share: ``R = |Σ_i c_i| / Σ_i |c_i|``, summed
    over the micro-batches and ranks of the step; the mean over the groups and positions where anything contributed. A
    KL term's gradient (β > 0) is part of it and need not cancel.
    """

    def __init__(self) -> None:
        self._rollouts: list[Tensor] = []  # net and gross (2, groups, positions) of each
        self._current: Tensor | None = None

    def expect(self, num_groups: int, longest_prefix: int, device: torch.device) -> None:
        """Start on a new rollout batch, whose groups share up to ``longest_prefix`` tokens; the same on all ranks."""
        self._current = torch.zeros(2, num_groups, longest_prefix, device=device) if longest_prefix else None
        if self._current is not None:
            self._rollouts.append(self._current)

    def watch(self, logps: Tensor, groups: Tensor, prefix_lengths: Tensor) -> None:
        """Read the gradient of ``logps`` (B, T) when it flows."""
        sums = self._current
        if sums is not None and logps.requires_grad:
            logps.register_hook(lambda gradient: _add_contributions(sums, gradient, groups, prefix_lengths))

    def finish_step(self, accelerator: Any, means: Means) -> None:
        """Add the step's residual to ``means`` as ``cancellation/shared_prefix``; one collective."""
        if not self._rollouts:
            return
        of_rank = [sums.flatten() for sums in self._rollouts]
        of_all = accelerator.reduce(torch.cat(of_rank), "sum").split([*map(len, of_rank)])
        for sums, reduced in zip(self._rollouts, of_all, strict=True):
            net, gross = reduced.view_as(sums)
            sums.zero_()
            present = gross > 0
            residuals = torch.where(present, net.abs() / gross.where(present, 1.0), 0.0)
            means.add("cancellation/shared_prefix", residuals.sum(), present.sum())
        self._rollouts = [] if self._current is None else [self._current]


def _add_contributions(sums: Tensor, gradient: Tensor, groups: Tensor, prefix_lengths: Tensor) -> None:
    longest = min(sums.shape[2], gradient.shape[1])
    shared = torch.arange(longest, device=gradient.device) < prefix_lengths[:, None]
    contributions = gradient[:, :longest].detach().double() * shared
    # a product, not index_add_, whose order of summation a GPU leaves open; in float64, which no setting makes TF32
    members = (torch.arange(sums.shape[1], device=groups.device)[:, None] == groups).double()
    sums[:, :, :longest] += (members @ torch.stack((contributions, contributions.abs()))).to(sums.dtype)


def rollout_metrics(rewards: Tensor, advantages: Tensor, signals: Mapping[str, Any]) -> dict[str, float]:
    """Shares of unscored, dead, all-correct and all-wrong groups, and the mean size of the advantages.

    ``advantages`` (N,) or (N, T) of all ranks, 0 where a completion was not scored.
    """
    mask, group_size, scored = signals["mask"], signals["group_size"], ~rewards.isnan()
    metrics = {
        "groups/frac_unscored": (~scored).float().mean(),
        "groups/frac_dead": dead_groups(rewards, group_size).float().mean(),
        "advantage/mean_abs": per_response(advantages, mask).abs().where(scored, torch.nan).nanmean(),
    }
    if signals["correct"] is not None:
        right, wrong = diagnostics.group_composition(signals["correct"], group_size)
        metrics |= {"groups/frac_all_correct": right, "groups/frac_all_wrong": wrong}
    values = torch.stack([value.float() for value in metrics.values()]).tolist()
    return {name: value for name, value in zip(metrics, values, strict=True) if not math.isnan(value)}


def per_response(advantages: Tensor, mask: Tensor) -> Tensor:
    """(N,): an estimator's advantage of each response, or the mean over its tokens."""
    return advantages if advantages.dim() == 1 else (advantages * mask).sum(1) / mask.sum(1).clamp(min=1)


def add_token_metrics(means: Means, probs: Tensor, advantages: Tensor, mask: Tensor) -> None:
    """Add the shares of tokens, and of the update's size, in each quarter of the old policy's probability."""
    means.add_shares("token_prob/frac_q", diagnostics.token_prob_counts(probs, mask))
    means.add_shares("grad_share/q", diagnostics.gradient_shares(probs, advantages, mask))


def add_lag(means: Means, log_ratio: Tensor, mask: Tensor) -> None:
    """Add the policy's distance from the one that generated the rows: ``log_ratio`` is log π − log π_old (B, T)."""
    counted = mask.bool()
    log_ratio = torch.where(counted, log_ratio, 0.0)
    means.add_tokens("lag/ratio/frac_tail", (log_ratio.abs() > math.log(2)).float(), mask)
    means.add_largest("lag/ratio/max", torch.where(counted, log_ratio.exp(), 0.0).max())


def over_all_microbatches(
    metrics: MutableMapping[str, list[float]], means: Means, batch: Mapping[str, Any], *, by_sequence: bool
) -> None:
    """Replace TRL's metrics of a planned micro-batch by metrics that do not depend on the cut.

    TRL's means over micro-batches become means over all tokens (``by_sequence``: clip shares over all responses);
    ``clip_ratio/low_min`` and ``high_max`` are dropped. A response that was left out (advantage 0 under β = 0) counts
    as not clipped; ``entropy`` is over the responses that are trained, and absent where there are none.
    """
    tokens = loss_mask(batch).sum()
    for name in [name for name in metrics if name in _TOKEN_MEANS and metrics[name]]:
        value = metrics[name].pop()
        if not metrics[name]:
            del metrics[name]  # TRL logs None for an empty list
        if name not in _CLIPPED:
            means.add(name, value * tokens, tokens)
        elif by_sequence:
            rows = len(batch["completion_mask"])
            means.add(name, tokens.new_full((), value * rows, dtype=torch.float64), batch["all_rows"])
        else:
            means.add(name, value * tokens, batch["all_tokens"])
    for name in _EXTREMES:
        metrics.pop(name, None)


def written_tokens(ids: Sequence[Any], tool_masks: Sequence[Any] | None) -> list[int]:
    """Tokens that the policy sampled of each completion: no tool's answers, where there is a mask of them."""
    masks = tool_masks or [None] * len(ids)
    return [len(row) if mask is None else sum(mask) for row, mask in zip(ids, masks, strict=True)]


def completion_lengths(lengths: Int[Tensor, " N"], is_truncated: Bool[Tensor, " N"]) -> dict[str, float]:
    """TRL's ``completions/…`` metrics for rows that a prompt sampler kept: tokens of all, and of those that ended.
    Source: `GRPOTrainer._generate` of TRL 1.16.
    """
    ended = lengths[~is_truncated]
    ended = ended if len(ended) else lengths.new_zeros(1)
    found = {f"{AREA}clipped_ratio": is_truncated.float().mean().item()}
    for kind, values in (("length", lengths.float()), ("terminated_length", ended.float())):
        statistics = {"mean": values.mean(), "min": values.min(), "max": values.max()}
        found |= {f"{AREA}{name}_{kind}": value.item() for name, value in statistics.items()}
    return found
