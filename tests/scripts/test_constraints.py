"""constraints.txt pins what pyproject.toml asks for, within its bounds, for every machine.

Scripts in an interpreter without these packages answer with the command to write.
"""

import itertools
import sys
import tomllib
from importlib.metadata import packages_distributions, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.paths import ROOT
from tests.test_layers import imported


def pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    assert len({name for name, _ in pairs}) == len(pairs), "a package is pinned twice"
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def unpinned() -> list[str]:
    """The libraries whose fields and words stand in files of the tree, where they are not those that are pinned."""
    libraries = ("trl", "transformers", "accelerate", "peft", "pydantic")
    return [name for name in libraries if version(name) != str(pins()[name])]


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = pins()
    for text in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name == project["name"]:
            continue  # an extra that takes in another
        assert name in pinned, f"{name} is in pyproject.toml and not in constraints.txt"
        assert pinned[name] in requirement.specifier, f"constraints.txt pins {name} to {pinned[name]}, outside {text}"


def test_every_package_that_is_imported_is_declared() -> None:
    """What another package happens to bring along may go with its next version. Scripts may import what is for dev."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    product = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    product |= {canonicalize_name(Requirement(text).name) for name in extras.keys() - {"dev"} for text in extras[name]}
    scripts = product | {canonicalize_name(Requirement(text).name) for text in extras["dev"]}
    brought_by, undeclared = packages_distributions(), set()
    for folder, declared in (("trainer", product), ("rewards", product), ("scripts", scripts)):
        for file in (ROOT / folder).rglob("*.py"):
            for name in {each.partition(".")[0] for each in imported(file)} - sys.stdlib_module_names:
                packages = {canonicalize_name(each) for each in brought_by.get(name, [name])}
                if name not in ("evenkeel", "scripts", "_installed") and not packages & declared:
                    undeclared.add(f"{folder} imports {name}, of {' or '.join(packages)}")
    assert undeclared == set()
