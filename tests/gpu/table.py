"""What only a GPU can say, and what an acceptance run found of it, as tables.

python -m tests.gpu.table                        # the list of docs/devices.md
python -m tests.gpu.table gpu_acceptance.json    # the table of a run
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.gpu.catalogue import paths


def table(found: Mapping[str, Any]) -> str:
    """Markdown: the machine in a sentence, then a row a path. What was not run is never shown as passed."""
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    counts = {status: sum(path["status"] == status for path in found["paths"]) for status in ("passed", "failed")}
    head = (
        f"{found['date']}, {found['device']}, code `{str(found['revision'])[:12]}`; {packages}. "
        f"{counts['passed']} passed, {counts['failed']} failed, of {len(found['paths'])} in {found['seconds']:.0f} s."
    )
    rows = [
        f"| `{path['name']}`: {path['what']} | {_outcome(path)} | {path['advice']} | {_seconds(path)} |"
        for path in found["paths"]
    ]
    return "\n".join([head, "", "| path | outcome | what to do about it | seconds |", "|---|---|---|---|", *rows])


def open_questions() -> str:
    """Markdown: what is not known without a GPU, in the order of the trials, and what to do about each result."""
    rows = [f"| `{path.name}`: {path.what} | {path.unknown} | {path.advice} |" for path in paths()]
    return "\n".join(["| path | not known without a GPU | what to do about the result |", "|---|---|---|", *rows])


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
    text = table(json.loads(Path(sys.argv[1]).read_text())) if sys.argv[1:] else open_questions()
    sys.stdout.write(text + "\n")
