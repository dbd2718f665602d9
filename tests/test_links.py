"""Every link of every Markdown file leads somewhere: to a file that is there, and to a heading of it."""

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.paths import ROOT

FOLDERS = (".github", "configs", "docs", "examples", "rewards", "scripts", "tests", "trainer")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


@cache
def tokens(page: Path) -> list[Token]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """The headings' anchors, as GitHub makes them: a heading that is there twice is numbered."""
    headings = [after for before, after in pairwise(tokens(page)) if before.type == "heading_open"]
    texts = ["".join(part.content for part in heading.children or []) for heading in headings]
    slugs = [re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") for text in texts]
    seen: Counter[str] = Counter()
    numbered = set()
    for slug in slugs:
        numbered.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return numbered


def is_broken(page: Path, link: str) -> bool:
    url = urlsplit(link)
    if url.scheme or url.netloc:
        return url.scheme not in ("http", "https") or "." not in url.netloc
    target = (page.parent / unquote(url.path)).resolve() if url.path else page
    if not target.is_file() or not target.is_relative_to(ROOT):
        return True
    return bool(url.fragment) and url.fragment not in anchors(target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path):
    parts = [part for token in tokens(page) for part in token.children or []]
    links = [part.attrGet("href") or part.attrGet("src") for part in parts if part.type in ("link_open", "image")]
    assert [link for link in links if is_broken(page, str(link))] == []
