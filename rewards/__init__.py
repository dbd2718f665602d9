"""Verifiers score completions against references. No torch, no TRL: they run anywhere."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.rewards.parts import GENERATORS as GENERATORS
    from evenkeel.rewards.parts import build_verifier as build_verifier
    from evenkeel.rewards.registry import PartError as PartError
    from evenkeel.rewards.reward_function import RewardFunction as RewardFunction
    from evenkeel.rewards.reward_function import reward_functions as reward_functions
    from evenkeel.rewards.verifier import Verdict as Verdict
    from evenkeel.rewards.verifier import Verifier as Verifier

_FROM = {
    "PartError": "evenkeel.rewards.registry",
    **dict.fromkeys(("Verdict", "Verifier"), "evenkeel.rewards.verifier"),
    **dict.fromkeys(("RewardFunction", "reward_functions"), "evenkeel.rewards.reward_function"),
    **dict.fromkeys(("GENERATORS", "build_verifier"), "evenkeel.rewards.parts"),
}
__all__ = sorted(_FROM)


def __getattr__(name: str) -> Any:
    """Import only the requested name: every worker process imports this package, and few need all verifiers."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FROM[name]), name)
