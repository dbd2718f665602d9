"""The site is the repository: every Markdown file is a page at its own path, so that links need no rewriting.

A source (`.py`, `.yaml`) that a page links to is shown as a page. Made here: the pages of strategies and of limits.
"""

import re
import sys
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))

from scripts.strategy_pages import strategy_pages  # noqa: E402

STRATEGIES = strategy_pages()
STRATEGY_TABLE = "trainer/algorithms/README.md"
FOLDERS = ("configs", "docs", "examples", "rewards", "scripts", "tests", "trainer")
PAGES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
ASSETS = sorted(
    path
    for kind in ("*.svg", "*.png", "*.csv", "*.certificate.json", "*.ipynb", "*_rollouts.html")
    for folder in ("configs", "examples")
    for path in (ROOT / folder).rglob(kind)
)
LANGUAGES = {".py": "python", ".yaml": "yaml"}
TO_SOURCE = re.compile(rf"\]\(([^)\s:#]+({'|'.join(map(re.escape, LANGUAGES))}))\)")
LIMITS = (  # page, heading, what it is about: beside the README's limits, which stand on the page itself
    ("configs/sweeps/laptop_report.md", "", "What the comparisons cannot say"),
    ("docs/audit.md", "#what-the-numbers-are-not", "What an audit of a reward function cannot say"),
    ("docs/devices.md", "#what-it-cannot-show", "What a stand-in for a GPU cannot show"),
    ("docs/devices.md", "#what-is-not-known-without-a-gpu", "What is not known without a GPU"),
    ("docs/doctor.md", "#how-often-they-are-wrong", "How often the doctor is wrong"),
    ("rewards/README.md", "#how-graders-in-the-field-do-on-the-same-cases", "What the mathematics verifier gets wrong"),
    ("trainer/algorithms/README.md", "#what-is-left-out", "Strategies that are left out"),
)


def on_config(config: Any) -> None:
    """The pages of strategies stand in the navigation behind their table, by kind."""
    kinds: dict[str, list[str]] = {}
    for uri in STRATEGIES:
        kinds.setdefault(uri.split("/")[1], []).append(uri)
    (section,) = [entry["Strategies"] for entry in config.nav if "Strategies" in entry]
    section += [{kind.replace("_", " ").capitalize(): uris} for kind, uris in kinds.items()]


def on_files(files: Any, config: Any) -> Any:
    """All pages, by their paths in the repository, in place of those of ``docs/``."""
    for file in files.documentation_pages():
        files.remove(file)
    for path in [*PAGES, *ASSETS]:
        uri = path.relative_to(ROOT).as_posix()
        files.append(File(uri, str(ROOT), config.site_dir, config.use_directory_urls))
    made = {"limits.md": limits(), **STRATEGIES}
    for uri, text in ({path.relative_to(ROOT).as_posix(): path.read_text() for path in PAGES} | made).items():
        for link, _ in TO_SOURCE.findall(text):
            source = normpath(join(dirname(uri), link))
            made[f"{source}.md"] = shown(source)
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to sources lead to the pages that show them, names of strategies in their table to theirs."""
    if page.file.src_uri.removesuffix(".md").endswith(tuple(LANGUAGES)):
        return markdown
    if page.file.src_uri == STRATEGY_TABLE:
        markdown = re.sub(
            r"^\| (\w+) \| `(\w+)` \|", r"| \1 | [`\2`](../../strategies/\1/\2.md) |", markdown, flags=re.M
        )
    return TO_SOURCE.sub(r"](\1.md)", markdown)


def shown(source: str) -> str:
    """The page of a source."""
    path = ROOT / source
    return f"# `{source}`\n\n````{LANGUAGES[path.suffix]}\n{path.read_text()}\n````\n"


def limits() -> str:
    """The README's limits, and where other pages admit theirs."""
    (section,) = re.findall(r"^## Limits\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    others = "\n".join(f"- [{about}]({page}{heading})" for page, heading, about in LIMITS)
    return f"# Limits\n{section}\n## By subject\n\n{others}\n"
