"""The stable Python API: names exported here stay, anything else may move between two minor versions.

    from evenkeel import RLVRTrainer, build_verifier, traits, strategies

`RLVRTrainer` replaces `trl.GRPOTrainer`; `build_verifier` builds a verifier by name; `traits` declares how a verifier
of your own is run (time, memory); `strategies` lists and finds what
``advantage=``, ``token_weight=``, ``coefficient=``, ``update_schedule=`` and ``prompt_sampler=`` can name.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import evenkeel.trainer  # noqa: F401  refuses another package called evenkeel

if TYPE_CHECKING:
    from evenkeel.rewards import GENERATORS as GENERATORS
    from evenkeel.rewards import RewardFunction as RewardFunction
    from evenkeel.rewards import Verdict as Verdict
    from evenkeel.rewards import Verifier as Verifier
    from evenkeel.rewards import build_verifier as build_verifier
    from evenkeel.rewards import reward_functions as reward_functions
    from evenkeel.rewards.user_verifiers import traits as traits
    from evenkeel.trainer.algorithms import registry as strategies  # noqa: F401
    from evenkeel.trainer.run.config.shipped import CONFIGS as CONFIGS
    from evenkeel.trainer.step.options import Engine as Engine
    from evenkeel.trainer.step.options import Evaluation as Evaluation
    from evenkeel.trainer.step.options import Guards as Guards
    from evenkeel.trainer.step.options import Speed as Speed
    from evenkeel.trainer.step.trainer import RLVRTrainer as RLVRTrainer

_FROM = {
    "RLVRTrainer": "evenkeel.trainer.step.trainer",
    **dict.fromkeys(("Engine", "Evaluation", "Guards", "Speed"), "evenkeel.trainer.step.options"),
    **dict.fromkeys(
        ("GENERATORS", "RewardFunction", "Verdict", "Verifier", "build_verifier", "reward_functions"),
        "evenkeel.rewards",
    ),
    "CONFIGS": "evenkeel.trainer.run.config.shipped",
    "traits": "evenkeel.rewards.user_verifiers",
    "strategies": "evenkeel.trainer.algorithms.registry",
}
__all__ = sorted([*_FROM, "__version__"])


def __getattr__(name: str) -> Any:
    """Import only the requested name: reading a run file must not need torch."""
    if name == "__version__":
        try:
            return version("trl-evenkeel")
        except PackageNotFoundError:
            return "0+unknown"
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_FROM[name])
    return module if name == "strategies" else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
