"""Strategies by name, collected from the files: each public function or class of a family's file is one."""

import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

from evenkeel.rewards.registry import Found, Kind, PartError
from evenkeel.trainer.algorithms.contract import (
    ADVANTAGE,
    COEFFICIENT,
    PROMPT_SAMPLER,
    REQUIRED,
    SIGNALS,
    TOKEN_WEIGHT,
    UPDATE_SCHEDULE,
    Traits,
    UpdateSchedule,
    naming,
    own_copy,
    traits_of,
)

_PACKAGES = {
    ADVANTAGE: "advantages",
    TOKEN_WEIGHT: "token_weights",
    COEFFICIENT: "coefficients",
    UPDATE_SCHEDULE: "update_schedules",
    PROMPT_SAMPLER: "prompt_samplers",
}


@dataclass(frozen=True)
class Strategy:
    """A function of one kind with its options; call it with the signals.

    Attributes:
        signals: names of the signals in its signature.
        columns: names of columns that a reward function must log for it.
        traits: declared, see `Traits`.
        token_level: an estimator that returned (N, T) on the tiny example.
    """

    kind: str
    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any]
    signals: frozenset[str]
    columns: tuple[str, ...]
    traits: Traits
    token_level: bool = False

    def __call__(self, signals: Mapping[str, Any]) -> Any:
        """The result for copies (see `own_copy`) of the ``signals`` that it names; no others are looked up.

        Signals are looked up in the same order on all ranks: a lookup may be a collective.
        """
        names = (*sorted(self.signals), *self.columns)
        options = {k: own_copy(v) if isinstance(v, list | dict) else v for k, v in self.options.items()}
        given = {name: own_copy(signals[name]) for name in names}
        with naming(f"{self.kind} {self.name!r}"):
            return self.function(**given, **options)

    @property
    def has_state(self) -> bool:
        """Whether it has a state, which a checkpoint must hold."""
        return hasattr(self.function, "state_dict")


def built_in(kind: str) -> dict[str, Callable[..., Any]]:
    """Name → function (or class, for a strategy with state) of every strategy of ``kind`` that ships."""
    return dict(collected(f"{__package__}.{_PACKAGES[kind]}"))


KINDS = {kind: Kind(kind, partial(built_in, kind)) for kind in _PACKAGES}


def find_strategy(kind: str, spec: Any) -> Strategy:
    """The strategy that ``spec`` (a `PartSpec`) names, its signature and options checked; it has not been tried yet.

    Raises:
        PartError: unknown name (with the nearest), failing import, a signature that asks for an unknown signal,
            unknown, missing, ill-typed or infinite options, or options that its own class refuses.
    """
    found = KINDS[kind].find(spec)
    target = found.target
    if not callable(target):
        raise PartError(f"{kind} {found.label!r} is a {type(target).__name__}, not a function.", code="not-a-function")
    is_class = inspect.isclass(target)
    called: Callable[..., Any] = target.__call__ if is_class else target
    parameters = [*inspect.signature(called).parameters.values()]
    parameters = [p for p in parameters if not (is_class and p.name == "self")]
    _check_signature(kind, found, parameters)
    if kind == UPDATE_SCHEDULE:
        example = "def schedule(*, …) -> UpdateSchedule"
        KINDS[kind].check_returned(found, called, lambda returned: returned is UpdateSchedule, example)
    signals = [p for p in parameters if p.name in SIGNALS[kind]]
    required = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    free = [p for p in required if p not in signals and p.name not in found.options]
    # that a reward function logs
    columns = free if kind == ADVANTAGE else []
    rest = [p for p in parameters if p not in signals and p not in columns]
    rest = list(inspect.signature(target).parameters.values()) if is_class else rest
    options = KINDS[kind].checked_options(found, rest, target.__init__ if is_class else target)
    return Strategy(
        kind=kind,
        name=found.label,
        function=_instance(kind, found.label, target, options) if is_class else target,
        options={} if is_class else options,
        signals=frozenset(p.name for p in signals),
        columns=tuple(p.name for p in columns),
        traits=traits_of(target),
    )


def strategy_table() -> list[dict[str, str]]:
    """Every built-in strategy: kind, name, one line, source, evidence, from its docstring."""
    rows = []
    for kind in _PACKAGES:
        for name, function in sorted(built_in(kind).items()):
            text = inspect.getdoc(function) or ""
            row = {"kind": kind, "name": name, "what": text.partition("\n")[0]}
            rows.append(row | {key: _section(text, key.capitalize()) for key in ("source", "evidence")})
    return rows


def _section(text: str, name: str) -> str:
    """The section ``name`` of a docstring, on one line."""
    found = re.search(rf"^{name}: (.+?)(?=\n\n|^[A-Z][a-z]+:|\Z)", text, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _instance(kind: str, label: str, target: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    missing = [name for name in ("state_dict", "load_state_dict") if not hasattr(target, name)]
    if missing:
        what = f"{kind} {label!r} is a class without {' and '.join(missing)}: a resumed run would lose its state."
        raise PartError(f"{what} Write them, or a function.", code="state-not-saved")
    try:
        return target(**options)
    except ValueError as error:
        raise PartError(f"{kind} {label!r}: {error}", code="option-not-accepted") from error


def _check_signature(kind: str, found: Found, parameters: list[inspect.Parameter]) -> None:
    starred = [p.name for p in parameters if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if starred:
        what = f"{kind} {found.label!r} takes *{starred[0]}. Name each argument."
        raise PartError(f"{what} Signals: {', '.join(SIGNALS[kind])}.", code="unnamed-arguments")
    given = {p.name for p in parameters}
    needed = REQUIRED.get(kind) or [*SIGNALS[kind]][:1] * given.isdisjoint(SIGNALS[kind])
    if missing := [name for name in needed if name not in given]:
        what = f"{kind} {found.label!r} does not take {', '.join(missing)}."
        raise PartError(f"{what} Signals: {', '.join(SIGNALS[kind])}.", code="missing-signal")


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


def no_other(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a ``package`` of strategies: names them."""

    def refuse(name: str) -> Any:
        raise AttributeError(f"{package} has no {name!r}. Its strategies: {', '.join(collected(package))}.")

    return refuse


def strategy_listing() -> str:
    """`strategy_table` in Markdown: one line a strategy, by kind and name."""
    rows = [row | {"name": f"`{row['name']}`"} for row in strategy_table()]
    texts = [[text.replace("``", "`") for text in row.values()] for row in rows]
    cells = [[text.replace("|", "\\|") or "–" for text in row] for row in texts]
    return _markdown([[*rows[0]], ["---"] * len(rows[0]), *cells])


def signal_listing() -> str:
    """`SIGNALS` as Markdown: a table for each kind of strategy that may name some."""
    tables = []
    for kind, signals in SIGNALS.items():
        head = f"signal of {'an' if kind == ADVANTAGE else 'a'} {kind.replace('_', ' ')}"
        rows = [[f"`{name}`", meaning] for name, meaning in signals.items()]
        tables += [_markdown([[head, "shape and meaning"], ["---"] * 2, *rows])] if signals else []
    return "\n\n".join(tables)


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
