"""The attributes of values that are no object of the answer's own: a test that uses one of them shows no class."""

import datetime
import decimal
import fractions
import importlib
import io
import pathlib
import re
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque

from rewards.verifiers.code_tests.inside.names import is_installed

_KINDS: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, range, slice),
    *(deque, Counter, OrderedDict, defaultdict, ChainMap, decimal.Decimal, fractions.Fraction, BaseException),
    *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta, re.Match, re.Pattern, io.StringIO),
    *(pathlib.PosixPath, types.GeneratorType, type({}.keys()), type({}.items()), type(iter([]))),
)
_OF_TABLES = (
    *(
        "iloc",
        "loc",
        "at",
        "iat",
        "columns",
        "index",
        "dtypes",
        "empty",
        "head",
        "tail",
        "equals",
        "to_dict",
        "groupby",
    ),
    *("to_numpy", "isna", "isnull", "notna", "nunique", "value_counts", "drop", "merge", "apply", "map", "groupby"),
)
_OF_NAMED_TUPLES = ("_fields", "_asdict", "_replace")


def _of_arrays() -> tuple[type, ...]:
    if not is_installed("numpy"):
        return ()
    numpy = importlib.import_module("numpy")
    return numpy.ndarray, numpy.float64, numpy.int64


_ATTRIBUTES = [(name, getattr(kind, name, None)) for kind in (*_KINDS, *_of_arrays()) for name in dir(kind)]

PLAIN_ATTRIBUTES = frozenset({*_OF_TABLES, *_OF_NAMED_TUPLES, *(name for name, _ in _ATTRIBUTES)})
PLAIN_METHODS = PLAIN_ATTRIBUTES.difference(
    _OF_TABLES, (name for name, value in _ATTRIBUTES if not callable(value) or name.startswith("__"))
)
"""Those that are methods wherever they are found: no plain value has them as something to compare."""
FILLING = frozenset({"append", "appendleft", "add", "insert", "extend", "update", "setdefault"})
