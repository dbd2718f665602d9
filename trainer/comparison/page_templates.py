"""How every page is made of its template: one engine, one style sheet below each page's own."""

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_STYLE = Path(__file__).parent / "reports" / "templates" / "style.css"


def page_templates(folder: Path, *, escaped: bool = True, **filters: Callable[..., str]) -> Environment:
    """The templates of ``folder``: what a page asks for and is not given is an error, lines of statements leave none.

    Args:
        escaped: whether what is put in is escaped, as HTML must be: a policy may have written it.
        filters: by the names that the templates call them.
    """
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment


def style(own: Path | None = None) -> Markup:
    """The style sheet that all pages share, and behind it a page's own."""
    return Markup(_STYLE.read_text() + ("" if own is None else own.read_text()))
