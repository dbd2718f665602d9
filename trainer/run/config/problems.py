"""Problems as pydantic raises them, and the refusal of a single one."""

from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from evenkeel.errors import Origin, Problem, Refusal


def config_error(code: str, path: str, what: str, instead: str = "", origin: Origin | None = None) -> Refusal:
    """The refusal of a single problem; ``path`` is dotted."""
    return Refusal(problems=[Problem(tuple(path.split(".")) if path else (), what, instead, origin, code=code)])


def problem(code: str, what: str, instead: str, location: tuple[str | int, ...] = ()) -> InitErrorDetails:
    """One problem for a validator to raise; ``location`` is relative to the value that pydantic validates."""
    error = PydanticCustomError(code, "{what} {instead}", {"what": what, "instead": instead})
    return InitErrorDetails(type=error, loc=location, input=None)


def raise_all(problems: Iterable[InitErrorDetails]) -> None:
    """Raise pydantic's error with these problems, if there are any; called inside validators."""
    if found := list(problems):
        raise ValidationError.from_exception_data("configuration", found)
