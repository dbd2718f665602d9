"""Values as bytes: what comes back is what went in, by its exact type, and nothing else comes back."""

import contextlib
import json
from collections import deque, namedtuple
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.rewards.verifiers.code_tests import codec
from evenkeel.rewards.verifiers.code_tests.codec import DEEPEST, CodecError, decode, encode

Pair = namedtuple("Pair", "left right")


def alike(one: Any, other: Any) -> bool:
    """Equal with equal types at every depth; NaN is like NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return alike(list(one.items()), list(other.items()))
    return bool(one == other)


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.fractions().filter(lambda fraction: len(str(fraction)) < 300)
    | st.decimals(allow_nan=False)
)
_HASHABLE = st.recursive(
    _SCALARS.filter(lambda scalar: scalar == scalar),  # a set with NaN equals no other
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.dictionaries(_HASHABLE, inner, max_size=4)
        | st.sets(_HASHABLE, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(_VALUES)
def test_round_trip(value: Any) -> None:
    assert alike(decode(encode(value)), value)


class Equal:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Number(int):
    pass


class Items(list[int]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Equal(),
        [Equal()],
        Number(1),
        Items(),
        type,
        (item for item in [1]),
        Equal,
        reduce(lambda inside, _: [inside], range(DEEPEST + 1), []),
        1 << 1_000_001,
        Fraction(1, 10**500),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refused(value: Any) -> None:
    with pytest.raises(CodecError):
        encode(value)


def test_a_list_that_holds_one_list_twice_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MOST_VALUES", 10_000)
    shared: list[Any] = ["x"]
    for _ in range(40):
        shared = [shared, shared]  # 41 lists, 2^40 values
    with pytest.raises(CodecError, match="more than 10000 values"):
        encode(shared)
    with pytest.raises(CodecError, match="too many values"):
        decode(b'["list"' + b",1" * 10_000 + b"]")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"[]",
        b'{"a": 1}',
        b'["list"',
        b'["object"]',
        b'["int", "5z"]',
        b'["int", "' + b"f" * 300_000 + b'"]',
        b'["type", "exit"]',
        b'["constant", "exit"]',
        b'["dict", [1]]',
        b'["dict", [["list"], 1]]',
        b'["Fraction", "1/0"]',
        b'["Fraction", "1/' + b"9" * 1000 + b'"]',
        b'["reference", ["name", "f"]]',
        b"[" * 100_000,
        b'["list",' * 200 + b'["list"]' + b"]" * 200,
        b"9" * 5000,
        b"\xff",
    ],
    ids=lambda frame: repr(frame[:24]),
)
def test_a_forged_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(CodecError):
        decode(frame)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["list", "dict", "set", "int", "ndarray", "type", "range", "Fraction", "0x1", "1/3", "nan"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)


@settings(deadline=None)
@given(_JSON | st.binary())
def test_decoding_raises_nothing_else(content: Any) -> None:
    frame = content if isinstance(content, bytes) else json.dumps(content).encode()
    with contextlib.suppress(CodecError):
        decode(frame)


class Counted(int):
    """A key that is compared with as many others as there are in its bucket."""

    comparisons = 0

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return self is other


def test_keys_that_collide_on_purpose_are_refused_before_a_set_is_built() -> None:
    with pytest.raises(CodecError, match="same hash"):
        decode(json.dumps(["set", *(["reference", number] for number in range(1000))]).encode(), Counted)
    assert Counted.comparisons == 0  # a set of them compares 1000 · 999 / 2 pairs
    period = (1 << 61) - 1  # of the hashes of integers
    with pytest.raises(CodecError, match="same hash"):
        decode(json.dumps(["set", *(["int", hex(number * period)] for number in range(100_000))]).encode())
