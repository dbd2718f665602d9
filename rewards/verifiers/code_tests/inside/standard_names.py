"""The names that answers use without importing them: ``List``, ``deque``, ``inf``, ``heappush``, …

LiveCodeBench and APPS define them for every program, and the starter code of LeetCode's problems needs them. Builtins
are kept: ``math.pow`` would break ``pow(a, b, m)``.
"""

import builtins
import importlib
from typing import Any

WHOLE_MODULES = (
    *("array", "bisect", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "io"),
    *("itertools", "json", "math", "operator", "os", "random", "re", "statistics", "string", "sys", "time", "typing"),
)
OPENED_MODULES = ("string", "bisect", "heapq", "itertools", "functools", "collections", "math", "typing")
RECURSION_LIMIT = 50_000


def standard_names() -> dict[str, Any]:
    """Name → module, and name → public object of the most common modules."""
    names: dict[str, Any] = {name: importlib.import_module(name) for name in WHOLE_MODULES}
    for name in OPENED_MODULES:
        module = names[name]
        public = getattr(module, "__all__", None) or [entry for entry in vars(module) if not entry.startswith("_")]
        names |= {entry: getattr(module, entry) for entry in public if not hasattr(builtins, entry)}
    return names | {"bisect": names["bisect"], "heapq": names["heapq"]}
