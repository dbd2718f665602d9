"""Errors that a user can put right, and the nearest name to one that is not known."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


class Refusal(ValueError):  # noqa: N818 the base of many errors
    """What a user can put right: shown as its message alone, without a traceback.

    Attributes:
        code: the kind of mistake, a short name in kebab case; where none is given, the name of the class: ``part`` of a
            `PartError`.
    """

    code = "refusal"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


def closest(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """The ``n`` names that ``name`` resembles most; capitals, dashes, blanks and dots make no difference.

    First those that are spelled the same, then those that begin with it, then the nearest by their letters.
    """
    spelled, wanted = {known: _letters(known) for known in names}, _letters(name)
    same = [known for known, letters in spelled.items() if letters and letters == wanted]
    begun = [known for known, letters in spelled.items() if len(wanted) > 2 and letters.startswith(wanted)]
    near = get_close_matches(name, spelled, n) or get_close_matches(wanted, spelled.values(), n)
    found = [known for each in near for known, letters in spelled.items() if each in (known, letters)]
    return [*dict.fromkeys([*same, *begun, *found])][:n]


def suggest(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """``Did you mean …?`` with the name that ``name`` resembles most, or else ``otherwise``."""
    near = closest(name, names)
    return f"Did you mean {near[0]}?" if near else otherwise


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
