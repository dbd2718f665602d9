"""A penalty for saying the same again, which length rewards otherwise invite."""

import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rewards.verifier import TokenVerifier, Verdict, score_problem

LONGEST_WORD = 16
"""Characters; no tokenizer has one token for a longer word."""
PIECE_OF_WORD, PIECE_OF_SIGNS = 4, 8
"""Characters of the pieces into which a longer word, and a row of one sign or blank, are cut."""


def repeated_share(sequence: Sequence[Hashable], ngram_size: int) -> float:
    """``1 − (different n-grams) / (n-grams)``, in 0…1; 0 for a sequence shorter than one n-gram.

    arXiv 2502.03373, App. C.2, as a share of the whole sequence. Time and memory grow with length × ``ngram_size``.
    """
    count = len(sequence) - ngram_size + 1
    if count <= 0:
        return 0.0
    return 1 - len({tuple(sequence[start : start + ngram_size]) for start in range(count)}) / count


def pieces(text: str) -> list[str]:
    """What stands for the tokens of a text that no policy wrote: about as many, in any script.

    A word is one; one of more than 16 characters is cut in pieces of 4. Each wide character (Chinese, Japanese,
    Korean) is one, as is each sign; a row of the same sign, or of the same blank, is cut in pieces of 8. Single blanks
    are none.
    """
    return [piece for kind, run in groupby(text, _kind) for piece in _cut(kind, "".join(run))]


def _kind(character: str) -> str:
    """What a character forms a row with: itself, or the other letters, digits and marks of a word."""
    is_of_word = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return "word" if is_of_word and unicodedata.east_asian_width(character) not in "WF" else character


def _cut(kind: str, run: str) -> Iterator[str]:
    if kind == "word" and len(run) <= LONGEST_WORD:
        yield run
        return
    if kind.isspace() and len(run) < PIECE_OF_SIGNS:
        return
    is_wide = kind.isalnum() and kind != "word"
    length = 1 if is_wide else PIECE_OF_WORD if kind == "word" else PIECE_OF_SIGNS
    yield from (run[start : start + length] for start in range(0, len(run), length))


@dataclass(frozen=True)
class RepetitionPenalty(TokenVerifier):
    """``max_penalty × repeated_share``: 0 where no n-gram of tokens comes twice, near ``max_penalty`` for a loop.

    A term to add to a reward for the answer; 0 is its full score, so that its accuracy is the share of completions
    without any repetition. The paper punishes the repeated tokens themselves; a reward of one number per completion
    cannot, and takes their share. Where nobody says what the policy sampled, `pieces` of the text stand for tokens, so
    that a loop without blanks is one too.

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
        if problem := score_problem(self.max_penalty):
            raise ValueError(f"max_penalty = {self.max_penalty:g}: {problem}")

    def __call__(self, completion: str, reference: Any, token_ids: Sequence[int] | None = None) -> Verdict:
        """Punish the repetitions in ``completion``; ``reference`` is not read."""
        sampled = pieces(completion) if token_ids is None else token_ids
        share = repeated_share(sampled, self.ngram_size)
        score = self.max_penalty * share if share else 0.0
        return Verdict(score, None, f"{share:.1%} of its {self.ngram_size}-grams are repetitions")

    def gold_completion(self, reference: Any) -> str | None:
        """The empty text."""
        return ""
