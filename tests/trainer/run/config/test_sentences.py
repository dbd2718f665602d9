"""The messages of a wrong run file: every code has one in `sentences.yaml`; other tests ask codes and values alone."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from evenkeel.trainer.run.config import ConfigError, batch_plan, grpo_config, load_config, quantization_config
from evenkeel.trainer.run.config.rules import RULES, Rule, rules_broken
from tests.paths import ROOT
from tests.trainer.run.config.test_batches import run
from tests.trainer.run.config.test_config import MINIMAL
from tests.trainer.run.config.test_rules import BROKEN_AND_KEPT

SENTENCES: Any = YAML(typ="safe").load(Path(__file__).with_name("sentences.yaml"))
LONG = {"(too deep)": "a: " + "[" * 65 + "]" * 65, "(too many)": f"a: &a [1, 2]\nb: [{', '.join(['*a'] * 10_000)}]\n"}


def asked(table: str) -> list[Any]:
    return [pytest.param(row, id=row["code"]) for row in SENTENCES[table]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NOWHERE", raising=False)
    (tmp_path / "base.yaml").write_text("extends: other.yaml\n")
    return tmp_path


def said(text: str, *overrides: str) -> list[dict[str, str]]:
    Path("run.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config("run.yaml", overrides)
    return [{"code": problem.code, "message": str(problem)} for problem in caught.value.problems]


@pytest.mark.parametrize("row", asked("files"))
def test_a_wrong_file(row: dict[str, str]) -> None:
    text = row["written"]
    assert said(LONG.get(text, text)) == [{"code": row["code"], "message": row["message"]}]


@pytest.mark.parametrize("row", asked("settings"))
def test_a_wrong_setting(row: dict[str, Any]) -> None:
    written = row["written"]
    found = said(MINIMAL, *([written] if isinstance(written, str) else written))
    assert {"code": row["code"], "message": row["message"]} in found


def test_a_file_that_cannot_be_read(folder: Path) -> None:
    def refused(path: str) -> tuple[str, str]:
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        return caught.value.code, str(caught.value)

    unreadable = "the configuration cannot be read: {}. Name a YAML file that exists."
    assert refused("none.yaml") == ("unreadable-file", f"none.yaml: {unreadable.format('no such file or directory')}")
    assert refused(str(folder)) == ("unreadable-file", f"{folder}: {unreadable.format('is a folder')}")
    is_setting = "'trl.beta=1' is a setting, and the name of the file comes first. Write FILE.yaml trl.beta=1."
    assert refused("trl.beta=1") == ("no-file", is_setting)
    (folder / "latin.yaml").write_bytes(b"a: \xff\n")
    latin = "latin.yaml: the file is not UTF-8 text, as YAML must be. Save it as UTF-8."
    assert refused("latin.yaml") == ("not-utf8", latin)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule(rule: Rule) -> None:
    ((_, what, instead),) = rules_broken([rule], BROKEN_AND_KEPT[rule.code][0])
    assert f"{what} {instead}" == SENTENCES["rules"][rule.code]


@pytest.mark.parametrize("row", asked("batches"))
def test_a_batch_that_cannot_be_cut(row: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        batch_plan(run(row["written"].get("trl", {}), **{k: v for k, v in row["written"].items() if k != "trl"}), 1)
    assert (caught.value.code, str(caught.value)) == (row["code"], row["message"])


def test_what_trl_refuses() -> None:
    with pytest.raises(ConfigError) as caught:
        grpo_config(run({"use_cpu": True, "bf16": False, "auto_find_batch_size": True}), 1)
    assert caught.value.code == "refused-by-trl"
    assert str(caught.value).startswith("trl: TRL refuses these arguments: auto_find_batch_size is not supported")


def test_a_model_in_4_bits_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenkeel.trainer.run.config.trl_config.find_spec", lambda name: None)
    model = {"name_or_path": "m", "lora": {"r": 4}, "quantization": {"load_in_4bit": True}}
    with pytest.raises(ConfigError) as caught:
        quantization_config(run({}, model=model))
    assert caught.value.code == "no-bitsandbytes"
    assert str(caught.value) == (
        "model.quantization: a model in 4 bits needs the package bitsandbytes, which is not installed. Install it "
        '(pip install -e ".[qlora]" -c constraints.txt), or leave `quantization` out.'
    )


def test_no_code_is_without_its_sentence() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "trainer/run/config").glob("*.py"))
    named = re.findall(r"""(?:\bproblem|_refuse|refused|config_error)\(\s*"([a-z0-9-]+)\"""", source)
    named += re.findall(r"""\bcode(?:, reason|, key, what)? ?= ?"([a-z0-9-]+)\"""", source)
    named += re.findall(r"""return "([a-z]+-[a-z-]+)", """, source)
    shown = {row["code"] for table in ("files", "settings", "batches") for row in SENTENCES[table]}
    in_tests_above = {"unreadable-file", "no-file", "not-utf8", "refused-by-trl", "no-bitsandbytes"}
    codes = {rule.code for rule in RULES}
    assert {*named} - shown - codes == in_tests_above
    assert {*SENTENCES["rules"]} == codes
