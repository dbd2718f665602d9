"""The precision of the run file is what is trained in, whatever the launcher says, or the run is refused."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from trl import GRPOConfig

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.launched_as import check_precision

FILES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "bf16"),
    "bf16: true": ({"bf16": True}, "bf16"),
    "bf16: false": ({"bf16": False}, "no"),
    "fp16: true": ({"fp16": True}, "fp16"),
    "fp16: true, bf16: false": ({"fp16": True, "bf16": False}, "fp16"),
    "fp16: false": ({"fp16": False}, "bf16"),
    "fp16: false, bf16: false": ({"fp16": False, "bf16": False}, "no"),
}
TOLD = (None, "", "no", "bf16", "fp16", "BF16", "fp8", "half")
CONTRADICTIONS = 7 * 2 + (3 + 2) + (2 + 2) * 2
"""fp8 and an unknown word under all 7 files; fp16 under those of bf16 and of neither; bf16, twice, under the others."""


def run(tmp_path: Path, trl: dict[str, Any]) -> Any:
    text = {
        "model": {"name_or_path": "m"},
        "data": {"train": {"path": "a/b"}},
        "rewards": [{"verifier": "exact_match"}],
    }
    (tmp_path / "run.yaml").write_text(json.dumps({**text, "trl": trl}))
    return load_config(tmp_path / "run.yaml")


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCELERATE_MIXED_PRECISION", "ACCELERATE_DEEPSPEED_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_let_through_is_trained_as_the_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers' own arguments are the judge: every combination trains as the file says, or is refused."""
    refused = 0
    for (trl, wanted), told in itertools.product(FILES.values(), TOLD):
        monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
        if told is not None:
            monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", told)
        try:
            check_precision(run(tmp_path, trl))
        except Refusal:
            refused += 1
            contradicts = (told or "").lower() not in ("", "no", wanted)
            assert contradicts, (trl, told)
            continue
        trained = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **trl).mixed_precision or "no"
        assert trained == wanted, (trl, told)
    assert refused == CONTRADICTIONS


@pytest.mark.parametrize(
    ("settings", "trl", "refused"),
    [
        ({"bf16": {"enabled": True}}, {"bf16": False}, True),
        ({"fp16": {"enabled": True}, "bf16": {"enabled": False}}, {}, True),
        ({"bf16": {"enabled": False}}, {"bf16": False}, False),
        ({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}, {"bf16": False}, False),
        ({"zero_optimization": {"stage": 2}}, {"bf16": False}, False),
    ],
)
def test_a_deepspeed_file_of_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, trl: dict[str, Any], refused: bool
) -> None:
    (tmp_path / "zero.json").write_text(json.dumps(settings))
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_CONFIG_FILE", str(tmp_path / "zero.json"))
    config = run(tmp_path, trl)
    if refused:
        with pytest.raises(Refusal, match=r"the precision of .*zero\.json"):
            check_precision(config)
    else:
        check_precision(config)
