"""Stand-ins for the answer's objects in the tests' process: every use of one is a request to the answer's process.

Plain values arrive as themselves, so ``==`` with an expected value runs here, on plain types. A stand-in equals no
plain value, whatever its class says there. An object that an answer *returns* instead of a plain value must neither
learn the expected value nor decide the comparison with it. So a returned stand-in is neither a number nor a collection:
arithmetic, order, items, length and conversions raise ``TypeError`` unless every operand is the answer's own. ``in``
iterates it here. It can be called, have attributes, text and a truth value, and be iterated, but only once.

An object of a class that derives from a plain type (an ``IntEnum``, a namedtuple) arrives with its content as that
type. It has that value's operators and attributes here; other attributes are requested from the object.

Objects that the tests *make* by calling a name that they use as a class (`names`) are under test with their
operators: all are requested from the object, as long as no other call returned it. A name of a plain value is that
value.
"""

import builtins
import operator
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partialmethod
from typing import Any, Literal

from evenkeel.rewards.verifiers.code_tests.codec import decode, encode
from evenkeel.rewards.verifiers.code_tests.inside.instances import built, crosses, graph

Exchange = Callable[[bytes], bytes]
Provenance = Literal["name", "made", "attribute", "returned", "new"]
"""How the tests got a stand-in. ``attribute``: of a named or made one; ``new``: not known yet."""


class NotSupportedError(BaseException):
    """The tests do something that cannot be done from another process: the row is unscored."""


class Connection:
    """The tests' side of the channel.

    Args:
        exchange: sends a frame and waits for the one that answers it.

    Attributes:
        classes: of the prompt; their instances are sent as their attributes.
        under_test: names of the answer that the tests use as classes.
        last_value: result of the last call.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._objects: dict[int, Remote] = {}
        self._callbacks: list[Callable[..., Any]] = []
        self.classes: Mapping[str, type] = {}
        self.under_test: Collection[str] = ()
        self.last_value: Any = None

    def named(self, path: str) -> "Remote":
        """The answer's object of that name, looked up at each use."""
        return Remote(self, ["name", path], "name")

    def ask(self, remote: "Remote", operation: str, *operands: Any) -> Any:
        """The result of an operation in the answer's process; raises its exception as a builtin one."""
        provenance = remote._provenance

        def refer(value: Any) -> Any:
            given = callable(value) or crosses(value, self.classes)
            if provenance in ("returned", "new") and not given:
                raise TypeError(f"an object of the answer's own is given a {type(value).__name__}")
            return self._referred(value)

        frame = self._exchange(encode([operation, *operands], refer))
        while True:
            kind, *content = decode(frame, self._resolved, arrays=True, liken=self._likened)
            if kind == "value":
                value, changed = content
                if isinstance(value, Remote):
                    vars(value)["_provenance"] = _provenance_after(remote, operation, value._provenance)
                    if value._provenance == "made" and isinstance(value._held, list | dict | set):
                        vars(value)["_held"] = None  # content that can change is requested
                if operation == "call":
                    self.last_value = value
                    self._overwrite(operands[1], value, changed)
                return value
            if kind == "raised":
                raise exception_of(*content)
            frame = self._exchange(self._called_back(*content))

    def _overwrite(self, arguments: list[Any], value: Any, changed: list[Any]) -> None:
        """Give the tests' containers the content that a function which returns ``None`` left in them.

        Any other reply with changes is forged.
        """
        if changed and (value is not None or len(changed) != len(arguments)):
            raise ValueError("the program wrote to the channel itself")
        for own, other in zip(arguments, changed, strict=False):
            overwrite(own, other)

    def _called_back(self, number: int, positional: list[Any], keywords: dict[str, Any]) -> bytes:
        try:
            return encode(["value", self._callbacks[number](*positional, **keywords), []], self._referred)
        except (Exception, NotSupportedError) as error:  # noqa: BLE001 — it belongs to the answer, which called
            names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            return encode(["raised", names, str(error)[:500], None])

    def _likened(self, name: Any, content: Any) -> Any:
        """An object of the answer with its content as a plain value.

        Empty content is dropped: tests that compare item by item would compare nothing.
        """
        remote = self._resolved(name)
        if not content and not isinstance(content, int | float | str | bytes):
            return remote
        held = remote._held
        if held is not None and not (type(held) is type(content) and held == content):
            remote = self._objects[name[1]] = Remote(self, name, remote._provenance)
        vars(remote)["_held"] = content
        return remote

    def _referred(self, value: Any) -> Any:
        if isinstance(value, Remote):
            return value._name_over_there
        if crosses(value, self.classes):
            return graph(value, self.classes, self._referred)
        if not callable(value):
            raise NotSupportedError(f"the tests pass a {type(value).__name__} to the answer")
        # It can only be called: its attributes lead to the tests.
        self._callbacks.append(value)
        return ["callback", len(self._callbacks) - 1]

    def _resolved(self, name: Any) -> Any:
        kind, number = name
        if kind == "graph":
            return built(number, self.classes, self._resolved)
        if kind != "object" or type(number) is not int:
            raise ValueError(f"{name!r:.80} is not an object of the answer")
        if number in self._objects:
            vars(self._objects[number])["_provenance"] = "returned"
        return self._objects.setdefault(number, Remote(self, name, "new"))


class Remote:
    """A stand-in for one object of the answer; ``_held`` is its content as a plain value, or ``None``."""

    _connection: Connection
    _name_over_there: Any
    _provenance: Provenance
    _iterated: bool
    _held: Any

    def __init__(self, connection: Connection, name: Any, provenance: Provenance) -> None:
        vars(self).update(
            _connection=connection, _name_over_there=name, _provenance=provenance, _iterated=False, _held=None
        )

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        return _ask(self, "call", list(positional), keywords)

    def __getattr__(self, name: str) -> Any:
        if (plain := plain_value(self)) is not self and hasattr(plain, name):
            return getattr(plain, name)
        decides = name in _DECIDING_METHODS or name in _OPERATORS
        if name.startswith("__array") or (decides and self._provenance not in ("name", "made")):
            raise AttributeError(f"an object of the answer's own is not asked for {name}")
        return _ask(self, "getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delattr", name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        plain = plain_value(self)
        return Remote if plain is self else type(plain)

    def __bool__(self) -> bool:
        plain = plain_value(self)
        return _ask(self, "bool") is True if plain is self else bool(plain)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Remote):
            return _ask(self, "__eq__", other)
        if (held := self._held) is not None:
            return held == other
        return self is not (value := _value(self)) and value == other

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        held = self._held
        return object.__hash__(self) if held is None else hash(held)

    def __contains__(self, item: object) -> bool:
        if (plain := plain_value(self)) is not self:
            return item in plain
        if isinstance(item, Remote) or self._provenance == "made":
            return bool(_ask(self, "__contains__", item))
        return any(item is other or item == other for other in self)

    def __iter__(self) -> Iterator[Any]:
        if (plain := plain_value(self)) is not self:
            return iter(plain)
        iterator: Any = _ask(self, "__iter__")
        if iterator is not self and self._provenance not in ("name", "made"):
            if self._iterated:
                raise TypeError("an object of the answer's own is iterated twice")
            vars(self)["_iterated"] = True
        return iterator  # type: ignore[no-any-return]

    def __next__(self) -> Any:
        if self._iterated:
            raise StopIteration
        try:
            return _ask(self, "__next__")
        except RemoteStopError:
            vars(self)["_iterated"] = True
            raise StopIteration from None

    def __instancecheck__(self, instance: Any) -> bool:
        return self._connection.ask(self, "isinstance", instance, self) is True

    def __subclasscheck__(self, subclass: Any) -> bool:
        return self._connection.ask(self, "issubclass", subclass, self) is True


def plain_value(remote: Remote) -> Any:
    """Its content; itself if it has none, or if the tests made it and so test its own behavior."""
    held = remote._held
    return remote if held is None or remote._provenance == "made" else held


def _provenance_after(subject: Remote, operation: str, before: Provenance) -> Provenance:
    """The provenance of a stand-in that an operation on ``subject`` returned; ``before`` is its previous one."""
    if before == "new" and operation == "call" and subject._provenance == "name":
        return "made" if subject._name_over_there[1] in subject._connection.under_test else "returned"
    if operation == "getattr" and subject._provenance not in ("returned", "new"):
        return "attribute"
    return "returned"


# Methods of plain values that get an expected value and decide how the two compare, as do `_OPERATORS`.
_DECIDING_METHODS = {
    *("startswith", "endswith", "count", "index", "find", "rfind", "rindex", "issubset", "issuperset", "isdisjoint"),
    *("difference", "intersection", "symmetric_difference", "union", "equals", "isclose", "allclose"),
}


def _ask(remote: Remote, operation: str, *operands: Any) -> Any:
    return remote._connection.ask(remote, operation, remote, *operands)


def _value(remote: Remote) -> Any:
    """The plain value of a name, or the content of an object; else the stand-in itself."""
    value = _ask(remote, "value") if remote._provenance == "name" else remote
    if type(value) is not Remote:
        return value
    plain = plain_value(value)
    return remote if plain is value else plain


def _guarded(operation: str) -> Callable[..., Any]:
    def method(self: Remote, *operands: Any) -> Any:
        if (value := _value(self)) is not self:
            return _plain_operation(operation, value, *operands)
        if self._provenance == "made" or (operands and all(isinstance(operand, Remote) for operand in operands)):
            return _ask(self, operation, *operands)
        raise TypeError(f"{operation} of an object that is no plain value")

    return method


def _plain_operation(name: str, value: Any, *operands: Any) -> Any:
    word = name.strip("_")
    operands = (value, *operands)
    if word in _REFLECTED:
        word, operands = word[1:], operands[::-1]
    function = getattr(builtins, word, None) or getattr(operator, f"__{word}__")
    return function(*operands)


_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_OTHERS = "len getitem setitem delitem neg pos abs lt le gt ge int float round index"
_REFLECTED = {f"r{name}" for name in _BINARY.split()}
_OPERATORS = {f"__{name}__" for name in (*_BINARY.split(), *_REFLECTED, *_OTHERS.split())}
for _name in _OPERATORS:
    setattr(Remote, _name, _guarded(_name))
for _name in ("__str__", "__repr__", "__enter__", "__exit__"):
    setattr(Remote, _name, partialmethod(_ask, _name))
_OPERATORS |= {"__eq__", "__ne__", "__contains__", "__complex__"}


MISSING_NAME = "the answer defines no "  # as written by `answer_process`
TESTS_MODULE = "tests"
"""``__module__`` of the tests' own classes."""


class RemoteStopError(RuntimeError):
    """StopIteration of the answer. As itself it would end loops of the tests early, and all() of no tests is true."""


class MissingNameError(BaseException):
    """The answer does not define a name that the tests use: an exception that no test may expect."""


def exception_of(names: list[str], text: str, exception: Any) -> BaseException:
    """The builtin exception that an exception of the answer is or derives from, with its text."""
    if names[0] == "NameError" and text.startswith(MISSING_NAME):
        return MissingNameError(text)
    kinds = [kind for name in names[1:] if isinstance(kind := getattr(builtins, name, None), type)]
    kind = next((kind for kind in kinds if issubclass(kind, Exception)), RuntimeError)
    if issubclass(kind, StopIteration | StopAsyncIteration):
        kind = RemoteStopError
    try:
        error = kind(text)
    except TypeError:  # UnicodeDecodeError and its like take five arguments
        error = RuntimeError(text)
    error.remote = exception  # type: ignore[attr-defined]
    error.remote_name = names[0]  # type: ignore[attr-defined]
    error.remote_kinds = names[1:]  # type: ignore[attr-defined]
    return error


def overwrite(own: Any, other: Any) -> None:
    """Give a container of the tests the content that the answer left in it."""
    if type(own) is not type(other):
        return
    if isinstance(own, list | bytearray):
        own[:] = other
    elif isinstance(own, dict | set):
        own.clear()
        own.update(other)
    elif isinstance(own, deque):
        own.clear()
        own.extend(other)
    elif type(own).__module__ == TESTS_MODULE:
        vars(own).clear()
        vars(own).update(vars(other))
    elif type(own).__name__ == "ndarray" and own.shape == other.shape:
        own[...] = other
