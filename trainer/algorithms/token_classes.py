"""Which kind of text a token is, and the policy's entropy at tokens of each kind."""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

CLASSES = ("number", "word", "symbol", "special")
"""With a digit; with a letter and no digit; with neither (operators, punctuation, spaces); of the tokenizer's own."""


def class_of(text: str, *, special: bool = False) -> int:
    """The place in `CLASSES` of a token's text; a fragment of a character, which is not text, counts as a symbol."""
    if special:
        return CLASSES.index("special")
    if any(character.isdigit() for character in text):
        return CLASSES.index("number")
    return CLASSES.index("word" if any(character.isalpha() for character in text) else "symbol")


def class_table(texts: Sequence[str], special: Collection[int]) -> Int[Tensor, "V"]:
    """The class of each token of a vocabulary, by its id."""
    return torch.tensor([class_of(text, special=token in special) for token, text in enumerate(texts)])


def entropies_by_class(
    entropies: Float[Tensor, "B T"], classes: Int[Tensor, "B T"], mask: Int[Tensor, "B T"]
) -> tuple[Float[Tensor, "classes"], Int[Tensor, "classes"]]:
    """``Σ H_t`` over the counted tokens of each class, and how many there are.

    ``H_t = −Σ_v π(v) log π(v)`` in nats, of the distribution that the token was drawn from; its class is the drawn
    token's. Most tokens have next to none, a few, mostly words at which an argument forks, have nearly all (arXiv
    2506.01939, section 3): a mean over all hides which of them loses its entropy. The classes are this project's.
    """
    kinds = torch.arange(len(CLASSES), device=classes.device)
    members = (classes[..., None] == kinds) & mask.bool()[..., None]
    return torch.where(members, entropies[..., None], 0.0).sum((0, 1)), members.sum((0, 1))
