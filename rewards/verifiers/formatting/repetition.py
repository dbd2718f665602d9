"""A penalty for saying the same again, which length rewards otherwise invite."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.verifier import TokenVerifier, Verdict, tokens


def repeated_share(sequence: Sequence[Hashable], ngram_size: int) -> float:
    """``1 − (different n-grams) / (n-grams)``, in 0…1; 0 for a sequence shorter than one n-gram.

    arXiv 2502.03373, App. C.2, as a share of the whole sequence. Time and memory grow with length × ``ngram_size``.
    """
    count = len(sequence) - ngram_size + 1
    if count <= 0:
        return 0.0
    return 1 - len({tuple(sequence[start : start + ngram_size]) for start in range(count)}) / count


@dataclass(frozen=True)
class RepetitionPenalty(TokenVerifier):
    """``max_penalty × repeated_share``: 0 where no n-gram of tokens comes twice, near ``max_penalty`` for a loop.

    A term to add to a reward for the answer; 0 is its full score, so that its accuracy is the share of completions
    without any repetition. The paper punishes the repeated tokens themselves; a reward of one number per completion
    cannot, and takes their share.

    Attributes:
        ngram_size: tokens that have to repeat together. Small ones meet formulae and names, which repeat rightly; the
            paper takes 40.
        max_penalty: the penalty of a completion that only repeats itself, at most 0.
    """

    ngram_size: int = 40
    max_penalty: float = -1.0
    reads_reference = False
    full_score = 0.0

    def __post_init__(self) -> None:
        """Check the size and the sign."""
        if self.ngram_size < 1:
            raise ValueError(f"ngram_size = {self.ngram_size}: nothing is made of less than one token; write 1 or more")
        if self.max_penalty > 0:
            raise ValueError(f"max_penalty = {self.max_penalty} would pay repetition; write 0 or a negative number")

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Punish the repetitions in ``completion``; ``reference`` is not read."""
        share = repeated_share(tokens(completion, token_ids), self.ngram_size)
        score = self.max_penalty * share if share else 0.0
        return Verdict(score, None, f"{share:.1%} of its {self.ngram_size}-grams are repetitions")

    def gold_completion(self, reference: Any) -> str | None:
        """The empty text."""
        return ""
