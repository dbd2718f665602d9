"""One verifier's references, as a run tries them."""

from collections.abc import Iterable
from typing import Any

from evenkeel.rewards import Verifier
from evenkeel.rewards.references import check_rewards


def check_references(verifier: Verifier, references: Iterable[Any], source: str) -> None:
    """Raises ``Refusal`` for rows that the verifier cannot use."""
    check_rewards({"it": verifier}, {"it": None}, list(references), None, source)
