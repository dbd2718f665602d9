"""The process that runs the answer: it receives calls and returns values, and never gets the expected ones.

The other end of the channel is the trainer for function calls, and the tests' process (through the trainer) for tests
that are code. A request is ``[operation, object, argument…]``; the reply is ``["value", value,
arguments]`` or ``["raised", class names, text, exception]``. An object that is not a plain value stays here, and its
number is sent; the answer's names are objects too. A function of the tests that was passed as an argument is called by
``["callback", number, arguments, keywords]``, during which the other side may send more requests.
"""

import builtins
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from evenkeel.rewards.verifiers.code_tests.codec import decode, encode
from evenkeel.rewards.verifiers.code_tests.inside.instances import built, classes_in, crosses, graph
from evenkeel.rewards.verifiers.code_tests.inside.standard_names import RECURSION_LIMIT, standard_names


def serve(channel: Any) -> None:
    """Load the answer, confirm it, and reply to requests until the channel closes."""
    program = decode(channel.receive())
    sys.setrecursionlimit(RECURSION_LIMIT)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    # As builtins: math's gcd can be called without an import, but the module has no gcd unless the answer defines one.
    vars(module)["__builtins__"] = {**vars(builtins), **standard_names()}
    objects = _Objects(module, channel)
    for title in ("preamble", "answer"):
        try:
            exec(compile(program[title], f"<{title}>", "exec"), vars(module))
        except BaseException as error:  # noqa: BLE001 — a program may raise anything; it is sent to the other side
            channel.send(objects.raised(error))
            return
        if title == "preamble":
            objects.classes = classes_in(vars(module))
    channel.send(encode(["value", None, []]))
    objects.reply_to_requests(until_reply=False)


class _Objects:
    """Objects that the other side knows by name or number, and the loop that serves its requests."""

    def __init__(self, module: types.ModuleType, channel: Any) -> None:
        self._module = module
        self._channel = channel
        self.classes: dict[str, type] = {}
        self._known: list[Any] = []
        self._numbers: dict[int, int] = {}

    def reply_to_requests(self, *, until_reply: bool) -> Any:
        """Serve requests until the channel closes or, with ``until_reply``, the other side replies to our call."""
        while True:
            frame = self._channel.receive()
            try:
                operation, *operands = decode(
                    frame, self._resolved, arrays=True, liken=lambda name, _: self._resolved(name)
                )
                if until_reply and operation in ("value", "raised"):
                    break
                reply = self._done(operation, operands)
            except BaseException as error:  # noqa: BLE001 — as above
                reply = self.raised(error)
            self._channel.send(reply)
        return operands[0] if operation == "value" else _raise(*operands)

    def raised(self, error: BaseException) -> bytes:
        """The reply for an exception: its class, the builtin classes it derives from, and its text."""
        names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
        try:
            text = str(error)[:500]
        except BaseException:  # noqa: BLE001 — a __str__ of the program's own
            text = ""
        return encode(["raised", [type(error).__name__, *names], str.__str__(text), error], self._referred)

    def _done(self, operation: str, operands: list[Any]) -> bytes:
        subject, *arguments = operands
        if operation == "call":
            positional, keywords = arguments
            value = subject(*positional, **keywords)
            # a function that works in place returns nothing
            changed = positional if value is None else []
            return encode(["value", value, changed], self._referred)
        plain: dict[str, Callable[..., Any]] = {
            "getattr": getattr, "setattr": setattr, "delattr": delattr, "isinstance": isinstance, "bool": bool,
            "issubclass": issubclass, "value": lambda value: value, "__iter__": iter, "__str__": str, "__repr__": repr,
            "__contains__": operator.contains,
        }  # fmt: skip
        value = plain[operation](subject, *arguments) if operation in plain else _special(operation, subject, arguments)
        return encode(["value", value, []], self._referred)

    def _referred(self, value: Any) -> Any:
        if crosses(value, self.classes):
            return graph(value, self.classes, self._referred)
        number = self._numbers.setdefault(id(value), len(self._known))
        if number == len(self._known):
            self._known.append(value)  # kept, so that no other object gets its identity
        return ["object", number]

    def _resolved(self, name: Any) -> Any:
        kind, key = name
        if kind == "graph":
            return built(key, {known: vars(self._module)[known] for known in self.classes}, self._resolved)
        if kind == "object":
            return self._known[key]
        if kind == "callback":
            return lambda *positional, **keywords: self._call_back(key, positional, keywords)
        return self._named(key)

    def _named(self, path: str) -> Any:
        """The object of ``f``, ``Solution().f`` or ``module.f``; ``f`` may be a method of ``class Solution``."""
        head, *rest = path.split(".")
        solution = vars(self._module).get("Solution")
        if not rest and head not in vars(self._module) and isinstance(solution, type) and hasattr(solution, head):
            return getattr(solution(), head)
        value: Any = self._module
        for part in (head, *rest):
            try:
                value = getattr(value, part.removesuffix("()"))
            except AttributeError:
                raise NameError(f"the answer defines no {path}") from None
            value = value() if part.endswith("()") else value
        return value

    def _call_back(self, number: int, positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        self._channel.send(encode(["callback", number, list(positional), keywords], self._referred))
        return self.reply_to_requests(until_reply=True)


def _raise(names: list[str], text: str, _: Any) -> Any:
    """Raise the exception of a function of the tests, as the builtin that it is or derives from."""
    kinds = [kind for name in names if isinstance(kind := getattr(builtins, name, None), type)]
    raise next((kind for kind in kinds if issubclass(kind, Exception)), RuntimeError)(text)


def _special(operation: str, subject: Any, arguments: list[Any]) -> Any:
    """The result of the special method ``operation``, looked up on the class as Python does."""
    method = getattr(type(subject), operation, None)
    if method is None and len(arguments) == 1:
        return NotImplemented
    if method is None:
        raise TypeError(f"{type(subject).__name__!r} object has no {operation}")
    return method(subject, *arguments)
