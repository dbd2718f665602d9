"""Templates and style sheet that all pages share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_SHARED = Path(__file__).parent / "reports" / "templates"


def page_templates(folder: Path, *, autoescape: bool = True, **filters: Callable[..., Any]) -> Environment:
    """The templates of ``folder``: undefined values are errors, and lines with only a statement leave no empty line.

    Args:
        autoescape: whether values are escaped, as HTML must be: a policy may have written them.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment


def style(own: Path | None = None) -> Markup:
    """The style sheet that all pages share, then the page's own."""
    return Markup((_SHARED / "style.css").read_text() + ("" if own is None else own.read_text()))
