"""One optimizer step on TRL, whose private methods it replaces."""

import warnings
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement


def check_trl(installed: str, supported: Requirement) -> None:
    """Warn of a TRL outside of what is ``supported``: a private method may be another one there, or called no more."""
    if not supported.specifier.contains(installed, prereleases=True):
        warnings.warn(
            f"TRL {installed} has not been tested, and the training step replaces private methods of it: what is "
            f"trained may be another thing. Evenkeel supports {supported}: pip install '{supported}'.",
            stacklevel=2,
        )


try:
    _required = requires("trl-evenkeel") or ()
except PackageNotFoundError:  # a checkout that is not installed
    _required = ()
for _each in map(Requirement, _required):
    if _each.name == "trl":
        check_trl(version("trl"), _each)
