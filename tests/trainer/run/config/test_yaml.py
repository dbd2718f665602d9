"""What YAML 1.2 scalars mean, and how files that are no configuration are refused."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config.yaml_document import read_file, read_value, write

SCALARS = [("1e-6", 1e-6), ("010", 10), ("no", "no"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("!!str 3", "3")]


@pytest.mark.parametrize(("text", "meaning"), SCALARS)
def test_a_scalar_means_what_yaml_1_2_says(text: str, meaning: object) -> None:
    value = read_value(text, "key").plain()
    assert value == meaning
    assert type(value) is type(meaning)


def test_every_value_remembers_the_line_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("# a comment\nmodel:\n  name: x\nlist:\n- 1\n-\n  deep: 2\n")
    tree = read_file(tmp_path / "run.yaml")
    model, items = tree.child("model"), tree.child("list")
    assert model is not None
    assert items is not None
    assert (model.origin.line, model.child("name").origin.line) == (2, 3)  # type: ignore[union-attr]
    assert [item.origin.line for item in items.value] == [5, 7]


def test_aliases_are_followed(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("a: &shared {x: 1}\nb: *shared\n")
    assert read_file(tmp_path / "run.yaml").plain() == {"a": {"x": 1}, "b": {"x": 1}}


DEEP = 1200
"""Levels of nesting: more than Python's stack has."""


def doubling(levels: int, copies: int, form: str) -> str:
    """Each line holds ``copies`` aliases to the line before it."""
    lines = [f"a0: &a0 {form.format('x')}"]
    for level in range(1, levels + 1):
        inside = ", ".join([f"*a{level - 1}"] * copies)
        lines.append(f"a{level}: &a{level} [{inside}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "line", "path", "code"),
    [
        # without the bounds these take ten minutes and 2 GB, or end in a RecursionError
        (doubling(30, 2, "{}"), None, "a12", "too-large"),
        ("a: &a [1, 2]\n" + f"b: [{', '.join(['*a'] * 10_000)}]\n", None, "b", "too-large"),
        (doubling(9, 10, "{{k: {}}}") + "? *a9\n: 1\n", None, "a4", "too-large"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(DEEP // 2)), None, "", "too-large"),
        ("a: " + "[" * DEEP, None, "", "too-large"),
        (doubling(9, 10, "[{}]"), None, "a4", "too-large"),
        ("a: 1\nb: " + "[" * 100 + "]" * 100, 2, "b", "too-large"),
        ("? [1]\n: 1\n", 1, "", "bad-key"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, "a.b", "key-twice"),
        ("a: 1\n2: b\n", 2, "", "bad-key"),
        ("a: 1\n<<: {b: 1}\n", 2, "", "bad-key"),
        ("a: 1\nb: *nowhere\n", 2, "", "not-yaml"),
        ("a: &loop [*loop]\n", 1, "a", "too-large"),
        ("a: !!python/name:os.system x\n", 1, "a", "unknown-tag"),
        ("a: !!bool maybe\n", 1, "a", "unknown-tag"),
        ("", None, "", "no-sections"),
        ("- a\n- b\n", None, "", "no-sections"),
        ("a: " + "9" * 5000, 1, "a", "unknown-tag"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, path: str, code: str
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(Refusal) as caught:
        read_file(file)
    (problem,) = caught.value.problems
    assert (problem.key, problem.code) == (path, code)
    assert len(str(problem)) < 400
    assert line is None or str(problem.origin) == f"{file}, line {line}"


def test_all_refused_keys_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("a: 1\na: 2\nb: {c: 1, c: 2}\n3: x\n")
    with pytest.raises(Refusal) as caught:
        read_file(file)
    assert [problem.key for problem in caught.value.problems] == ["a", "b.c", ""]
    assert str(caught.value).startswith("3 problems:\n- ")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "large.yaml").write_text("".join(f"k{number}: 1\n" for number in range(100_000)))
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff\n")
    odd = [tmp_path / f"{name}.yaml" for name in ("absent", "latin", "pipe", "device", "loop", "large")]
    for path in (*odd, tmp_path, tmp_path / ("a" * 300)):
        with pytest.raises(Refusal) as caught:
            read_file(path)
        assert caught.value.code == "unreadable-file"
        assert f"mean {path}" not in str(caught.value)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=6).filter("<<".__ne__)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"]))
    | st.sampled_from(
        [text for text, _ in SCALARS] + ["a\nb\n", "\n", "line\n\n  indented", "a: b", "# no comment", "- x"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_is_read_back_the_same(data: object) -> None:
    # repr tells 1 from 1.0 and True, which == does not.
    assert repr(read_value(write(data), "key").plain()) == repr(data)
