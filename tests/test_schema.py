"""The schemas of run, sweep and claim files: all that ships is valid, planted mistakes are not, right files are."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evenkeel.trainer.command.schema import SCHEMAS, main
from evenkeel.trainer.lab.sweeps.schema import RESERVED_KEYS
from evenkeel.trainer.run.config.layers import overridden
from evenkeel.trainer.run.config.yaml_document import read_file, read_value
from tests.paths import ROOT
from tests.scripts.test_constraints import unpinned
from tests.trainer.run.check.mistakes import RIGHT_SETTINGS
from tests.trainer.run.check.mistakes.workshop import RIGHT

CONFIGS = ROOT / "configs"
LINE = "# yaml-language-server: $schema="
SHIPPED = {
    path: path.read_text().partition("\n")[0].removeprefix(LINE)
    for path in sorted(CONFIGS.rglob("*.yaml"))
    if path.parent.name != "accelerate"
}
"""Run, sweep or claim file → the schema that its first line names."""
VALIDATORS = {kind: Draft202012Validator(json.loads((CONFIGS / f"{kind}.schema.json").read_text())) for kind in SCHEMAS}
CLAIM = {"claim": "A is better.", "source": "a paper", "variant": "a", "against": ["b"], "matters": 0.02}
SWEEP = {"config": "quickstart.yaml", "baseline": "a", "seeds": [0, 1, 2], "variants": {"a": {}}}


def kind_of(path: Path) -> str:
    named = (path.parent / SHIPPED[path]).resolve()
    assert named.parent == CONFIGS, path
    return named.name.removesuffix(".schema.json")


def refused(kind: str, tree: Any) -> list[str]:
    """Where and why the schema refuses."""
    return [f"{error.json_path}: {error.message:.200}" for error in VALIDATORS[kind].iter_errors(tree)]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_schema_in_the_tree_is_the_one_that_is_printed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if unpinned():
        pytest.skip(f"the schemas are made with other versions of {', '.join(unpinned())}")
    assert main([kind]) == 0
    Draft202012Validator.check_schema(VALIDATORS[kind].schema)
    written = (CONFIGS / f"{kind}.schema.json").read_text()
    assert capsys.readouterr().out == written, f"evenkeel schema {kind} > configs/{kind}.schema.json, or a ClassVar"


def test_all_that_ships_is_valid() -> None:
    kinds = Counter(kind_of(path) for path in SHIPPED)
    assert kinds["run"] >= 74
    assert kinds["sweep"] >= 4
    assert kinds["claim"] == len([*(CONFIGS / "claims").glob("*.yaml")])
    wrong = {path.name: refused(kind_of(path), read_file(path).plain()) for path in SHIPPED}
    assert {name: problems for name, problems in wrong.items() if problems} == {}


MISTAKES = [
    "modle={}",
    "stopping.skip_fault=1",
    "trl.loss_type=gpro",
    "trl.learning_rat=1",
    "trl.num_generations=1",
    "algorithm.advantage=grop",
    "algorithm.advantage={name: pass_at_k, kk: 4}",
    "algorithm.update_schedule={name: lopti, eta: much}",
    "algorithm.coefficient={name: dppo, divergence: js}",
    "rewards=[{verifier: exact}]",
    "data.test={generator: {name: countdwn}}",
    "rewards=[]",
    "logging.report_to=[wanbd]",
    "model.lora={rank: 8}",
]
"""Names, words, types and bounds, of the file's own keys, of a library's, of a strategy and of a generator."""


@pytest.mark.parametrize("override", MISTAKES)
def test_a_mistake_in_a_run_file_is_found(tmp_path: Path, override: str) -> None:
    assert refused("run", changed(tmp_path, RIGHT, override))


def test_a_mistake_in_a_sweep_file_is_found() -> None:
    assert refused("sweep", SWEEP) == []
    pass_at_k = {"algorithm.advantage": {"name": "pass_at_k", "kk": 1}}
    wrong = [{"a": each} for each in ({"trl.learning_rat": 1}, pass_at_k, {"seed": 1})]
    mistakes: list[dict[str, Any]] = [{"variants": each} for each in wrong]
    for mistake in (*mistakes, {"baselin": "a"}, {"grid": {"trl.beta": ["no"]}}, {"outcomes": ["taxes"]}):
        assert refused("sweep", SWEEP | mistake), mistake


def test_a_mistake_in_a_claim_file_is_found() -> None:
    right = {"sweep": "sweep.yaml", "claims": {"better": CLAIM}}
    assert refused("claim", right) == []
    wrong = ({"variants": ["a"]}, {"against": []}, {"direction": "up"}, {"matters": 0}, {"outcome": "taxes"})
    claims = [{"claims": {"better": CLAIM | each}} for each in wrong]
    for mistake in (*claims, {"sweep": SWEEP}, {"sweep": []}, {"claims": {}}, {"name": 1}):
        assert refused("claim", right | mistake), mistake


def test_what_a_file_leaves_out_may_be_in_the_one_that_it_extends() -> None:
    part = {"model": {"lora": {"r": 8}}, "algorithm": {"advantage": {"k": 2}}, "data": {"train": {"max_rows": 9}}}
    assert refused("run", part) == []
    assert refused("run", {"extends": "base.yaml", **part}) == []
    assert refused("sweep", {"extends": "base.yaml", "variants": {"b": None}, "executor": {"parallel": 2}}) == []


@pytest.mark.parametrize("overrides", RIGHT_SETTINGS, ids=str)
def test_right_settings_are_valid(tmp_path: Path, overrides: Sequence[str]) -> None:
    assert refused("run", changed(tmp_path, RIGHT, *overrides)) == []
    given = {key: read_value(value, key).plain() for key, _, value in (each.partition("=") for each in overrides)}
    settings = {key: value for key, value in given.items() if key not in RESERVED_KEYS}
    assert refused("sweep", SWEEP | {"variants": {"a": settings}}) == []
    assert refused("sweep", SWEEP | {"grid": {key: [value] for key, value in settings.items()}}) == []


def test_dotted_keys_lead_into_what_has_no_fixed_keys() -> None:
    """Into parts, lists, named sources and the mappings of libraries."""
    keys = {"algorithm.advantage.k": 2, "algorithm.coefficient.cap": 3.0, "data.train.generator.seed": 1}
    keys |= {"rewards.0.verifier.scheme": "paper", "data.test.gsm8k.max_rows": 9, "trl.generation_kwargs.top_h": 0.5}
    assert refused("sweep", SWEEP | {"variants": {"a": keys}}) == []
    assert refused("sweep", SWEEP | {"variants": {"a": {"evaluation.samples.k": 2}}})


def changed(folder: Path, text: str, *overrides: str) -> Any:
    (folder / "run.yaml").write_text(text)
    tree = read_file(folder / "run.yaml")
    for override in overrides:
        tree = overridden(tree, override)
    return tree.plain()
