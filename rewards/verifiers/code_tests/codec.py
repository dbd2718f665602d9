"""Values as bytes, by their exact types: the format of values from a process that runs a policy's program.

A pickle would run code, and an object with methods of its own (an ``__eq__`` that is always true, a ``str`` that lies
about its letters) would score itself. So only values whose ``type(value)`` *is* one of the types below are written,
with their content and nothing else, and reading builds those types alone. Both ends refuse values that are too deep,
too long or unknown. The file needs the standard library alone: the sandboxed processes run it too.

The frame is JSON. ``null``, truth values, strings, floats (``NaN`` and ``Infinity`` included) and integers below 2^63
stand for themselves; everything else is an array that begins with its type: ``["tuple", 1, 2]``,
``["dict", [key, value], …]``, ``["int", "-0xff…"]``. NumPy's scalars are written as the Python numbers that they hold,
its arrays as ``["ndarray", dtype, nested lists]``. `Counter` and `defaultdict` become plain dicts, which they equal;
views of a dict become lists. A function, object or generator is refused, unless ``refer`` has a name for it. With a
name, an object of a class that derives from a type below (an ``IntEnum``, a namedtuple) is written with its content as
that type, ``["like", name, content]``: the reader may use the content without trusting the object.
"""

import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 100  # containers in containers
# In one frame; a list that contains one list twice counts it twice.
MOST_VALUES = 2_000_000
LONGEST_INTEGER = 1_000_000  # bits
# Characters of a decimal, and of the two sides of a fraction together.
LONGEST_NUMBER = 400
# Keys of one dict or set with the same hash: more are made on purpose, to take quadratic time.
MOST_COLLISIONS = 64

Refer = Callable[[Any], Any]
Liken = Callable[[Any, Any], Any]

_PLAIN_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, object, type(None))
}
_SEQUENCES: set[type] = {list, tuple, set, frozenset, deque}
_COLLECTIONS: dict[str, Any] = {kind.__name__: kind for kind in _SEQUENCES}
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
# Type → its content as JSON, and how it is made of that.
_PARTS: dict[type, tuple[Callable[[Any], Any], Callable[..., Any]]] = {
    **{kind: (lambda value: [value.isoformat()], kind.fromisoformat) for kind in (date, datetime, time)},
    timedelta: (lambda value: [value.days, value.seconds, value.microseconds], timedelta),
    complex: (lambda value: [value.real, value.imag], complex),
    bytes: (lambda value: [value.hex()], bytes.fromhex),
    bytearray: (lambda value: [value.hex()], bytearray.fromhex),
}
_MADE = {kind.__name__: make for kind, (_, make) in _PARTS.items()}
# Content of an object as the type that its class derives from, by that type's methods, not the object's.
_CONTENTS: dict[type, Callable[[Any], Any]] = {
    int: lambda value: int.__add__(value, 0),
    float: lambda value: float.__mul__(value, 1.0),
    str: str.__str__,
    bytes: lambda value: bytes.__add__(value, b""),
    list: lambda value: list.__getitem__(value, slice(None)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
_MAPPINGS: dict[type, str] = {dict: "dict", Counter: "dict", defaultdict: "dict", OrderedDict: "ordered"}


class CodecError(ValueError):
    """A value cannot be written, or bytes are not a valid frame."""


def encode(value: Any, refer: Refer | None = None) -> bytes:
    """``value`` as a frame.

    Args:
        value: what to write.
        refer: value that no frame can hold → its name (JSON), written as ``["reference", name]``.

    Raises:
        CodecError: the value, or one inside it, is of another type, nested more than 100 deep, or too long.
    """
    return json.dumps(_Writer(refer).tree(value, 0), separators=(",", ":")).encode()


def decode(frame: bytes, resolve: Refer | None = None, *, arrays: bool = False, liken: Liken | None = None) -> Any:
    """The value that ``frame`` holds.

    Args:
        frame: written by `encode`, or forged by a program.
        resolve: name → object; without it references are refused.
        arrays: build NumPy arrays instead of nested lists of their elements.
        liken: (name, content) → stand-in for an object; without it the content is taken.

    Raises:
        CodecError: the bytes are not a valid frame, or exceed a limit.
    """
    # Counted before JSON makes objects of them.
    if sum(map(frame.count, (b",", b"[", b"{"))) > 3 * MOST_VALUES:
        raise CodecError(f"a frame of more than {MOST_VALUES} values")
    try:
        return _Reader(resolve, arrays, liken).value(json.loads(frame), 0)
    except CodecError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError, ArithmeticError) as error:
        raise CodecError(f"{type(error).__name__} in a frame of {len(frame)} bytes") from error


class _Writer:
    def __init__(self, refer: Refer | None) -> None:
        self._refer = refer
        self._left = MOST_VALUES

    def tree(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise CodecError(f"more than {MOST_VALUES} values")
        if depth > DEEPEST:
            raise CodecError(f"nested more than {DEEPEST} deep")
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            if -(1 << 63) < value < 1 << 63:
                return value
            if value.bit_length() > LONGEST_INTEGER:
                raise CodecError(f"an integer of {value.bit_length()} bits, more than {LONGEST_INTEGER}")
            return ["int", hex(value)]
        if kind in _SEQUENCES:
            return [kind.__name__, *(self.tree(item, depth + 1) for item in value)]
        if kind in _MAPPINGS:
            pairs = dict.items(value)
            return [_MAPPINGS[kind], *([self.tree(key, depth + 1), self.tree(item, depth + 1)] for key, item in pairs)]
        return self._rare(value, kind, depth)

    def _rare(self, value: Any, kind: type, depth: int) -> Any:
        if kind in _PARTS and type(getattr(value, "tzinfo", None)) in (type(None), timezone):
            return [kind.__name__, *_PARTS[kind][0](value)]
        if kind in _VIEWS:
            return self.tree(list(value), depth)
        if kind is range or kind is slice:
            return [kind.__name__, *(self.tree(part, depth + 1) for part in (value.start, value.stop, value.step))]
        if kind is Decimal or kind is Fraction:
            if isinstance(value, Fraction) and (value.numerator * value.denominator).bit_length() > 3 * LONGEST_NUMBER:
                raise CodecError("a fraction of too many digits")
            return [kind.__name__, str(value)]
        if isinstance(value, type) and kind is type and _PLAIN_TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        if value is Ellipsis or value is NotImplemented:
            return ["constant", repr(value)]
        if kind.__module__ == "numpy":  # `item` and `tolist` may lie if a program forges the module's name:
            if hasattr(value, "tolist") and kind.__name__ == "ndarray":  # their results are written by exact type
                return ["ndarray", str(value.dtype), self.tree(value.tolist(), depth + 1)]
            if hasattr(value, "item"):
                return self.tree(value.item(), depth + 1)
        if self._refer is None:
            raise CodecError(f"a {kind.__name__} is no plain value")
        name = self._refer(value)
        base = next((base for base in _CONTENTS if issubclass(kind, base)), None)
        if base is None or name[0] != "object":
            return ["reference", name]
        return ["like", name, self.tree(_CONTENTS[base](value), depth)]


class _Reader:
    def __init__(self, resolve: Refer | None, arrays: bool, liken: Liken | None) -> None:
        self._resolve = resolve
        self._arrays = arrays
        self._liken = liken
        self._left = MOST_VALUES

    def value(self, tree: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise CodecError("too many values, or nested too deep")
        if not isinstance(tree, list | dict):
            return tree
        if isinstance(tree, dict):
            raise CodecError("a JSON object")
        kind, *rest = tree
        if kind in _COLLECTIONS:
            items = [self.value(item, depth + 1) for item in rest]
            return _COLLECTIONS[kind](_hashable(items) if kind in ("set", "frozenset") else items)
        if kind in ("dict", "ordered"):
            pairs = [(self.value(key, depth + 1), self.value(item, depth + 1)) for key, item in rest]
            _hashable([key for key, _ in pairs])
            return dict(pairs) if kind == "dict" else OrderedDict(pairs)
        return self._rare(kind, rest, depth)

    def _rare(self, kind: Any, rest: list[Any], depth: int) -> Any:
        if kind == "like":
            name, tree = rest
            content = self.value(tree, depth + 1)
            return content if self._liken is None else self._liken(name, content)
        if kind == "ndarray":
            dtype, elements = rest
            values = self.value(elements, depth + 1)
            if not self._arrays:
                return values
            # Only the process of the tests builds arrays, and only where one is returned.
            import numpy

            return numpy.array(values, dtype=dtype)
        if kind in ("range", "slice"):
            return (range if kind == "range" else slice)(*(self.value(part, depth + 1) for part in rest))
        if kind in _MADE:
            return _MADE[kind](*rest)
        (content,) = rest
        if kind == "reference" and self._resolve is not None:
            return self._resolve(content)
        if not isinstance(content, str):
            raise CodecError(f"{kind!r:.40} is no type of ours")
        if kind == "int" and len(content) <= LONGEST_INTEGER // 4 + 4:
            return int(content, 16)
        if kind in ("Decimal", "Fraction") and len(content) <= LONGEST_NUMBER:
            return Decimal(content) if kind == "Decimal" else _fraction(content)
        if kind == "type":
            return _PLAIN_TYPES[content]
        if kind == "constant":
            return {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[content]
        raise CodecError(f"{kind!r:.40} is no type of ours, or too long")


def _fraction(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or "1"))


def _hashable(keys: list[Any]) -> list[Any]:
    """``keys``; raises if so many share a hash that building a set of them would take quadratic time."""
    if keys and Counter(map(hash, keys)).most_common(1)[0][1] > MOST_COLLISIONS:
        raise CodecError("keys with the same hash")
    return keys
