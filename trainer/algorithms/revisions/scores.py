"""How repairable a wrong answer is."""

from jaxtyping import Float
from torch import Tensor


def repair_scores(repaired: Float[Tensor, "N revisions"]) -> Float[Tensor, "N"]:
    """``φ_i = mean_k 1[r(ŷ_{i,k}) = 1]`` over the judged revisions of each row; 0 where there are none.

    ``repaired`` is 1 where the revision is right, 0 where it is wrong, NaN where there is none or nobody could judge
    it.

    Ours: the paper (arXiv 2605.16302) says only that φ is 0 for right answers and in [0, 1] for wrong ones.
    """
    judged = ~repaired.isnan()
    return repaired.nan_to_num().sum(1) / judged.sum(1).clamp(min=1)
