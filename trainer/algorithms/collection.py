"""Built-in strategies are collected: a public function or class written in a file of a family's package is one."""

import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def collected(package: str) -> dict[str, Callable[..., Any]]:
    """Name → function (or class, for a strategy with state) of every strategy in ``package``, by its files.

    What a file imports is not its own, and a leading underscore keeps a function to its file.
    """
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        for name, value in vars(import_module(module.name)).items():
            own = getattr(value, "__module__", None) == module.name and not name.startswith("_")
            if own and (inspect.isfunction(value) or inspect.isclass(value)):
                assert name not in found, f"{name} is written twice in {package}"
                found[name] = value
    return found
