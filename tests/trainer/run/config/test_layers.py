"""Base, file and command line: what merges, what replaces, what is not inherited, what is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Origin, Refusal
from evenkeel.trainer.run.config.layers import layered, merged, overridden
from evenkeel.trainer.run.config.yaml_document import Node, write

HERE = Origin("test", 1)


def node(data: Any) -> Node:
    if isinstance(data, dict):
        return Node({key: node(item) for key, item in data.items()}, HERE)
    return Node([node(item) for item in data] if isinstance(data, list) else data, HERE)


@pytest.mark.parametrize(
    ("base", "change", "result"),
    [
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": [1, 2, 3]}, {"a": [4]}, {"a": [4]}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": {"name": "ar", "alpha": 0.1}}, {"a": {"name": "lopti"}}, {"a": {"name": "lopti"}}),
        (
            {"a": {"name": "ar", "alpha": 0.1}},
            {"a": {"name": "ar", "k": 1}},
            {"a": {"name": "ar", "alpha": 0.1, "k": 1}},
        ),
        ({"a": {"alpha": 0.1}}, {"a": {"name": "ar"}}, {"a": {"alpha": 0.1, "name": "ar"}}),
    ],
)
def test_mappings_merge_and_everything_else_replaces(base: Any, change: Any, result: Any) -> None:
    assert merged(node(base), node(change)).plain() == result


KEYS = st.sampled_from(["a", "b", "c", "name"])
TREES = st.dictionaries(
    KEYS, st.recursive(st.integers(0, 3), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner))
)


@given(TREES)
def test_nothing_over_something_and_something_over_nothing_change_nothing(tree: Any) -> None:
    assert merged(node(tree), node({})).plain() == tree
    assert merged(node({}), node(tree)).plain() == tree
    assert merged(node(tree), node(tree)).plain() == tree


@given(TREES, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3), st.integers(4, 9))
def test_an_override_changes_its_own_path_and_no_other(tree: Any, keys: list[str], value: int) -> None:
    try:
        result = overridden(node(tree), f"{'.'.join(keys)}={value}").plain()
    except Refusal:
        return  # the path runs through a scalar or a list, which is refused below
    for key in keys[:-1]:
        others = {name: item for name, item in result.items() if name != key}
        assert others == {name: item for name, item in (tree or {}).items() if name != key}
        result, tree = result[key], (tree or {}).get(key)
    assert result == {**(tree or {}), keys[-1]: value}


@pytest.mark.parametrize(
    ("override", "result"),
    [
        ("trl.learning_rate=1e-6", {"learning_rate": 1e-6, "beta": 0}),
        ("trl.scheduler={min: 1, max: [2, 3]}", {"scheduler": {"min": 1, "max": [2, 3]}, "beta": 0}),
        ("trl.deep.deeper=x=y", {"deep": {"deeper": "x=y"}, "beta": 0}),
        ("trl=null", None),
        ("trl.beta=''", {"beta": ""}),
    ],
)
def test_the_value_of_an_override_is_yaml(override: str, result: Any) -> None:
    assert overridden(node({"trl": {"beta": 0}}), override).plain() == {"trl": result}


def test_an_override_reaches_into_a_list() -> None:
    tree = node({"rewards": [{"weight": 1.0}, {"weight": 1.0}]})
    assert overridden(tree, "rewards.1.weight=2").plain() == {"rewards": [{"weight": 1.0}, {"weight": 2}]}


@pytest.mark.parametrize(
    ("override", "path", "code"),
    [
        ("trl.beta", "", "bad-override"),
        ("trl..beta=3", "", "bad-override"),
        ("--trl.beta=3", "", "bad-override"),
        ("trl.beta=", "", "bad-override"),
        ("trl.beta=[1", "trl.beta", "not-yaml"),
        ("extends=base.yaml", "", "bad-override"),
        ("rewards.1.weight=2", "rewards.1", "bad-place"),
        ("rewards.-1=2", "rewards.-1", "bad-place"),
        ("algorithm.advantage.k=1", "algorithm.advantage.k", "bad-place"),
    ],
)
def test_a_malformed_override_is_refused(override: str, path: str, code: str) -> None:
    tree = node({"trl": {"beta": 0}, "rewards": [{"weight": 1}], "algorithm": {"advantage": "grpo"}})
    with pytest.raises(Refusal) as caught:
        overridden(tree, override)
    (problem,) = caught.value.problems
    assert (str(problem.origin), problem.key, problem.code) == ("command line", path, code)
    assert ("=null" in problem.instead) == (override == "trl.beta=")


def saved(folder: Path, **files: Any) -> Path:
    for name, data in files.items():
        (folder / f"{name}.yaml").write_text(write(data))
    return folder / "run.yaml"


def test_a_file_is_laid_over_its_base_and_the_command_line_over_both(tmp_path: Path) -> None:
    base = {"name": "base", "output_dir": "runs/base", "trl": {"a": 1, "b": 1, "c": 1}}
    run = saved(tmp_path, base=base, run={"extends": "base.yaml", "trl": {"b": 2, "c": 2}})
    assert layered(run, ["trl.c=3"]).plain() == {"trl": {"a": 1, "b": 2, "c": 3}}


def test_the_origin_of_a_value_is_the_layer_that_wrote_it(tmp_path: Path) -> None:
    run = saved(tmp_path, base={"trl": {"a": 1, "b": 1}}, run={"extends": "base.yaml", "trl": {"b": 2}})
    trl = layered(run, ["trl.c=3"]).child("trl")
    assert trl is not None
    origins = {key: str(item.origin) for key, item in trl.value.items()}
    assert origins == {"a": f"{tmp_path}/base.yaml, line 2", "b": f"{run}, line 3", "c": "command line"}


def test_all_malformed_overrides_are_reported_at_once(tmp_path: Path) -> None:
    run = saved(tmp_path, run={"trl": {}})
    with pytest.raises(Refusal) as caught:
        layered(run, ["a", "b=", "c=1"])
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(("extends", "code"), [("a" * 5000, "no-base"), ("child.yaml", "second-base"), (3, "no-base")])
def test_a_base_that_cannot_be_extended_is_refused(tmp_path: Path, extends: Any, code: str) -> None:
    run = saved(tmp_path, run={"extends": extends}, base={"a": 1}, child={"extends": "base.yaml"})
    with pytest.raises(Refusal) as caught:
        layered(run, [])
    (problem,) = caught.value.problems
    assert (str(problem.origin), problem.code) == (f"{run}, line 1", code)
