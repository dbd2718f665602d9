"""constraints.txt pins what pyproject.toml asks for, within its bounds, for every machine."""

import itertools
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.paths import ROOT


def pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    assert len({name for name, _ in pairs}) == len(pairs), "a package is pinned twice"
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = pins()
    for text in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        assert name in pinned, f"{name} is in pyproject.toml and not in constraints.txt"
        assert pinned[name] in requirement.specifier, f"constraints.txt pins {name} to {pinned[name]}, outside {text}"


def test_no_pin_is_of_a_local_build() -> None:
    """torch==2.13.0+cpu could not be installed from PyPI; torch==2.13.0 accepts both."""
    assert [name for name, version in pins().items() if version.local] == []
