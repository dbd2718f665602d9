"""What an acceptance run found, as the table for a README."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def table(found: Mapping[str, Any]) -> str:
    """Markdown: the machine in a sentence, then a row a path. What was not run is never shown as passed."""
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    counts = {status: sum(path["status"] == status for path in found["paths"]) for status in ("passed", "failed")}
    head = (
        f"{found['date']}, {found['device']}, code `{str(found['revision'])[:12]}`; {packages}. "
        f"{counts['passed']} passed, {counts['failed']} failed, of {len(found['paths'])} in {found['seconds']:.0f} s."
    )
    rows = [f"| `{path['name']}`: {path['what']} | {_outcome(path)} | {_seconds(path)} |" for path in found["paths"]]
    return "\n".join([head, "", "| path | outcome | seconds |", "|---|---|---|", *rows])


def _outcome(path: Mapping[str, Any]) -> str:
    if path["status"] != "passed":
        return f"**{path['status']}**: {_cell(path['reason'])}"
    facts = "; ".join(f"{name} {_shown(value)}" for name, value in path["facts"].items())
    return f"passed{': ' if facts else ''}{_cell(facts)}"


def _seconds(path: Mapping[str, Any]) -> str:
    return "" if path["seconds"] is None else f"{path['seconds']:.0f}"


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(table(json.loads(Path(sys.argv[1]).read_text())) + "\n")
