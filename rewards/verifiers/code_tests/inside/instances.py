"""Objects of classes that a prompt gives to both sides, such as ``ListNode``: they are sent as their attributes.

Objects that they point to are sent with them, also in chains and cycles. The receiving side uses its own class, so that
an object brings values and no behavior.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evenkeel.rewards.verifiers.code_tests.codec import CodecError, decode, encode

MOST_INSTANCES = 100_000


def graph(root: Any, classes: Mapping[str, type], refer: Callable[[Any], Any]) -> list[Any]:
    """``root`` and all instances reachable from it, as ``["graph", [[class name, attributes], …]]``, the root first.

    Args:
        root: an instance whose class has a name in ``classes``.
        classes: those that both sides know.
        refer: value that is neither plain nor such an instance → its name.
    """
    found, numbers = [root], {id(root): 0}

    def referred(value: Any) -> Any:
        if not crosses(value, classes):
            return refer(value)
        number = numbers.setdefault(id(value), len(found))
        if number == len(found):
            found.append(value)
        return ["node", number]

    nodes: list[list[str]] = []
    while len(nodes) < len(found):
        instance = found[len(nodes)]
        nodes.append([type(instance).__name__, encode(dict(vars(instance)), referred).decode()])
        if len(found) > MOST_INSTANCES:
            raise CodecError(f"more than {MOST_INSTANCES} objects that lead to one another")
    return ["graph", nodes]


def built(nodes: list[list[str]], classes: Mapping[str, type], resolve: Callable[[Any], Any]) -> Any:
    """The root of a `graph`, of this side's ``classes``, made without calling them."""
    instances: list[Any] = [object.__new__(classes[name]) for name, _ in nodes]

    def resolved(name: Any) -> Any:
        return instances[name[1]] if name[0] == "node" else resolve(name)

    for instance, (_, attributes) in zip(instances, nodes, strict=True):
        vars(instance).update(decode(attributes.encode(), resolved, arrays=True))
    return instances[0]


def crosses(value: Any, classes: Mapping[str, type]) -> bool:
    """True if ``value`` has attributes and its class is known by name to both sides."""
    return type(value).__name__ in classes and not isinstance(value, type) and hasattr(value, "__dict__")


def classes_in(names: Mapping[str, Any]) -> dict[str, type]:
    """The classes that the code in these globals defines."""
    home = names["__name__"]
    return {name: value for name, value in names.items() if isinstance(value, type) and value.__module__ == home}
