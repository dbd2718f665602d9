"""Tables that other people's code printed on seeded inputs; each says which repository, commit and function."""

import json
from pathlib import Path
from typing import Any

import torch


def published_cases(folder: str, strategy: str) -> list[dict[str, Any]]:
    """The cases of a strategy in ``<folder>/published_code.json``, lists of numbers as tensors."""
    text = (Path(__file__).parent / folder / "published_code.json").read_text()
    cases = [case for case in json.loads(text) if case["strategy"] == strategy]
    return [{k: torch.tensor(v) if isinstance(v, list) else v for k, v in case.items()} for case in cases]
