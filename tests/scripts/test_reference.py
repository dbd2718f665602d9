"""The tables of configs/README.md and the page of commands are those that the code prints."""

from dataclasses import fields

import pytest

from scripts.reference import SECTIONS, TABLES
from tests.paths import ROOT

PAGES = {
    "options": "configs/README.md",
    "rules": "configs/README.md",
    "commands": "docs/commands.md",
    "metrics": "docs/metrics.md",
}


@pytest.mark.parametrize("table", TABLES)
def test_the_table_is_the_one_that_is_printed(table: str):
    page = PAGES[table]
    assert TABLES[table]() in (ROOT / page).read_text(), f"paste into {page}: python scripts/reference.py {table}"


def test_options_are_declared_once_and_differ_by_their_defaults_alone():
    differing = {}
    for name, kind, model in SECTIONS:
        assert not [key for key in vars(model).get("__annotations__", {}) if key in model.model_fields], name
        own = {field.name: field.default for field in fields(kind)}
        assert model.model_fields.keys() <= own.keys()
        in_a_run = {key: field.default for key, field in model.model_fields.items()}
        differing |= {f"{name}.{key}": value for key, value in in_a_run.items() if own[key] != value}
    assert differing == {"speed.microbatches": "planned", "speed.skip_old_logps": None, "vllm.check_agreement_every": 1}
