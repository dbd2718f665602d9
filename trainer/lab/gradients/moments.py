"""Parameter gradients of many estimators, added up group by group.

Estimates that are unbiased over prompts come from pairs of groups.
S estimators, P groups (one prompt each, independent), D parameters or dimensions of their sketch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

RANK_TOLERANCE = 1e-6
"""Singular values below this share of a group's largest are left out of the basis of its contributions."""


def basis(contributions: Float[Tensor, "S M"]) -> tuple[Float[Tensor, "S r"], Float[Tensor, "r M"]]:
    """``coefficients @ rows = contributions``, with as few rows as there are linearly independent ones.

    Gradients are linear in the contributions, so r backward passes serve all S estimators: two for all estimators that
    see only right and wrong, whatever their normalization. Rows are orthonormal (of the SVD); singular values below
    `RANK_TOLERANCE` times the largest are left out, an error of the same relative size. All zero: no row.
    """
    left, values, right = torch.linalg.svd(contributions.double(), full_matrices=False)
    rank = int((values > RANK_TOLERANCE * values[:1]).sum()) if values.numel() and values[0] > 0 else 0
    return left[:, :rank] * values[:rank], right[:rank]


class GradientSums:
    """Sums over groups of the gradients (S, D) and of their inner products within a group (S, S)."""

    totals: Float[Tensor, "S D"]
    within: Float[Tensor, "S S"]

    def __init__(self, estimators: int, dimensions: int) -> None:
        self.totals = torch.zeros(estimators, dimensions)
        self.within = torch.zeros(estimators, estimators, dtype=torch.float64)
        self.groups = 0

    def add(self, coefficients: Float[Tensor, "S r"], jacobian: Float[Tensor, "r D"]) -> None:
        """One group: its gradients are ``coefficients @ jacobian``; r may be 0."""
        self.groups += 1
        if len(jacobian):
            self.totals.addmm_(coefficients.float(), jacobian)
            gram = (jacobian @ jacobian.T).double()
            self.within += coefficients.double() @ gram @ coefficients.double().T

    def moments(self) -> "Moments":
        """The moments of all groups added so far."""
        totals = self.totals
        return Moments(self.groups, (totals @ totals.T).double(), self.within)


def together(blocks: Sequence[GradientSums]) -> GradientSums:
    """The sums over the groups of all blocks, of the same estimators."""
    whole = GradientSums(*blocks[0].totals.shape)
    for block in blocks:
        whole.totals += block.totals
        whole.within += block.within
        whole.groups += block.groups
    return whole


@dataclass(frozen=True)
class Moments:
    """Inner products of S estimators' gradients over P groups.

    Attributes:
        totals: (S, S) of the sums over groups.
        within: (S, S) summed over groups of the inner products within each.
    """

    groups: int
    totals: Float[Tensor, "S S"]
    within: Float[Tensor, "S S"]

    @property
    def norms(self) -> Float[Tensor, "S"]:
        """‖Σ_p g_p‖: the length of the update on all groups."""
        return self.totals.diagonal().clamp(min=0).sqrt()

    @property
    def cosines(self) -> Float[Tensor, "S S"]:
        """Of the sums over the same groups; NaN for an estimator whose gradient is 0."""
        return self.totals / (self.norms[:, None] * self.norms)

    @property
    def between(self) -> Float[Tensor, "S S"]:
        """Unbiased ``⟨E g_s, E g_u⟩``: the mean of ``⟨g_{s,p}, g_{u,q}⟩`` over all pairs of different groups, p ≠ q.

        ``(⟨Σ g_s, Σ g_u⟩ − Σ_p ⟨g_{s,p}, g_{u,p}⟩) / (P (P − 1))``. May be negative on its diagonal: then the
        expected gradient is lost in the noise.
        """
        return (self.totals - self.within) / (self.groups * (self.groups - 1))

    @property
    def noise(self) -> Float[Tensor, "S"]:
        """Unbiased trace of the covariance of one group's gradient, ``(Σ‖g_p‖² − ‖Σ g_p‖² / P) / (P − 1)``."""
        return (self.within.diagonal() - self.totals.diagonal() / self.groups) / (self.groups - 1)

    @property
    def signal_to_noise(self) -> Float[Tensor, "S"]:
        """``‖E g‖² / tr Cov(g)`` of one prompt's gradient, numerator and denominator unbiased; 1/SNR prompts make the
        noise of the mean as large as the signal."""
        return self.between.diagonal() / self.noise

    def alignment(self, reference: int) -> Float[Tensor, "S"]:
        """Cosine of each expected gradient with the reference's, from `between`; NaN where a squared norm is not > 0.

        It excludes the noise that both share on the same prompts, which moves plain cosines toward 1. With noisy
        gradients it can be beyond ± 1.
        """
        lengths = self.between.diagonal().where(self.between.diagonal() > 0, torch.nan).sqrt()
        return self.between[:, reference] / (lengths * lengths[reference])
