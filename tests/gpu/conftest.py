"""``--table``: what became of each path and what it showed, as a Markdown table at the end."""

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A row a path."""
    if config.option.table:
        terminalreporter.write_line("\n| path | outcome | shown | seconds |\n|---|---|---|---|")
        for outcome in ("passed", "failed", "error", "skipped"):
            for row in _rows(outcome, terminalreporter.stats.get(outcome, [])):
                terminalreporter.write_line(row)


def _rows(outcome: str, reports: list[Any]) -> Iterator[str]:
    for report in reports:
        reason = f": {report.longrepr[2].removeprefix('Skipped: ')}" if outcome == "skipped" else ""
        facts = "; ".join(f"{name} {value}" for name, value in report.user_properties)
        yield f"| `{report.nodeid.rpartition('::')[2]}` | {outcome}{reason} | {facts} | {report.duration:.0f} |"
