"""docs/devices.md holds every place that calls into vLLM or DeepSpeed, and none that is gone."""

import ast
import re

from tests.paths import ROOT

PAGE = (ROOT / "docs" / "devices.md").read_text()
CALLS = re.compile(
    r"sync_weights\(|engine\.generate|\.llm\b|vllm_client|engine, changed|deepspeed_plugin|ds_tensor|from deepspeed"
)
"""What our code calls of them, as it is written there."""


def places() -> set[str]:
    """``file:function`` of each innermost function in the product that holds such a call."""
    found = set()
    for path in sorted((ROOT / "trainer").rglob("*.py")):
        text = path.read_text()
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        for number, line in enumerate(text.splitlines(), 1):
            if CALLS.search(line) and not line.lstrip().startswith(("#", '"')):
                around = [node for node in functions if node.lineno < number <= (node.end_lineno or 0)]
                if around:
                    found.add(f"{path.relative_to(ROOT)}:{max(around, key=lambda node: node.lineno).name}")
    return found


def test_every_call_into_vllm_and_deepspeed_is_in_the_table():
    section = PAGE.partition("## Calls into vLLM and DeepSpeed")[2].partition("\n## ")[0]
    listed = [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in section.splitlines() if line.startswith("| `")]
    named = {cells[0] for cells in listed}
    assert places() - named == set(), "calls without a row in docs/devices.md"
    for cells in listed:
        file, function = cells[0].split(":")
        text = (ROOT / file).read_text()
        assert all(f"def {name}(" in text for name in (function, *cells[1:])), cells
