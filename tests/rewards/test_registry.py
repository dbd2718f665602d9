"""`build_verifier`: by name, path, mapping and function; what it refuses and what it says."""

import sys
from pathlib import Path
from shutil import rmtree  # noqa: F401
from typing import Any

import pytest

from evenkeel.rewards import PartError, build_verifier, registry
from evenkeel.rewards.verifier import Verifier
from evenkeel.rewards.verifiers.knights_knaves.verifier import KnightsKnaves


class NoFile(KnightsKnaves):
    def __init__(self) -> None:
        raise FileNotFoundError("no answers.json")


NOT_ACCEPTED = "option-not-accepted"
GYM = "evenkeel.rewards.verifiers.reasoning_gym.verifier"
HERE = "tests.rewards.user_verifiers.written"
REFUSED = [
    (type("NoCall", (Verifier,), {}), "failed-constructor", "abstract method __call__"),
    (NoFile, "failed-constructor", "FileNotFoundError: no answers.json"),
    ("nights_knaves", "unknown-name", "Did you mean knights_knaves"),
    ("parts/mine.py:judge", "failed-import", "package.module:attribute"),
    ({"name": "knights_knaves", "scheme": "papr"}, NOT_ACCEPTED, "'accuracy' or 'paper'"),
    ({"name": "countdown", "use_al": True}, "unknown-option", "Did you mean use_all"),
    ({"name": f"{HERE}:last_word", "return": 1}, "unknown-option", "returns"),
    ({"name": f"{HERE}:of_trl", "completions": []}, "unknown-option", "has no option 'completions'"),
    ({"name": "trl.rewards:get_repetition_penalty_reward", "max_penalty": 1.0}, "failed-constructor", "be positive"),
    ({"name": "countdown", "use_all": 1}, NOT_ACCEPTED, "valid boolean"),
    ({"name": "repetition_penalty", "max_penalty": 1.0}, NOT_ACCEPTED, "less than or equal to 0"),
    ({"name": "math_answer", "cpu_seconds": float("nan")}, NOT_ACCEPTED, "finite number"),
    (
        {"name": "cosine_length", "max_tokens": 9, "verifier": "countdown", "wrong_short": float("-inf")},
        NOT_ACCEPTED,
        "fi",
    ),
    ({"name": "repetition_penalty", "max_penalty": float("-inf")}, NOT_ACCEPTED, "finite number"),
    ({"name": "countdown", True: "all"}, "unknown-option", "use_all"),
    ({"name": "math_answer", "workers": -1}, NOT_ACCEPTED, "greater than or equal to 0"),
    ({"name": "code_tests", "cpu_seconds": float("inf")}, NOT_ACCEPTED, "finite number"),
    ({"name": "code_tests", "cpu_seconds": 1e12}, NOT_ACCEPTED, "1000000"),
    ({"name": "soft_overlong", "max_tokens": 10, "buffer_tokens": 11}, NOT_ACCEPTED, "more than"),
    ({"name": "cosine_length", "max_tokens": 9, "verifier": "format"}, NOT_ACCEPTED, "reads no answer"),
    ({"name": "cosine_length", "max_tokens": 9, "verifier": "countdown", "exceeded": 1}, NOT_ACCEPTED, "below"),
    ({"name": "cosine_length", "max_tokens": 9, "verifier": f"{HERE}:of_trl"}, NOT_ACCEPTED, "reads no answer"),
    ({"scheme": "paper"}, "part-without-name", "'scheme'"),
    ("no_such_package:verifier", "failed-import", "ModuleNotFoundError"),
    ({"name": 5}, "part-without-name", "5"),
    ("collections:OrderedDict", "standard-library", "collections:OrderedDict"),
    ({"name": f"{GYM}:_PUZZLE24", "use_all": False}, "unknown-option", "has no option 'use_all'. Its options: none"),
    ({"name": "soft_overlong", "max_tokens": 90}, "missing-option", "{name: soft_overlong, max_tokens: …, buffer_t"),
    ("evenkeel.rewards.extraction:answer_block", "wrong-signature", "(completion, reference)"),
]


@pytest.mark.parametrize(
    "name", ["os:system", "os.path:exists", "this:s", "builtins:exec", "tests.rewards.test_registry:rmtree"]
)
def test_what_python_brings_is_refused_also_through_a_module_of_ones_own(name: str):
    """Before it is imported: `this` prints a poem; and before it is called."""
    sys.modules.pop("this", None)
    with pytest.raises(PartError) as refusal:
        build_verifier(name)
    assert refusal.value.code == "standard-library"
    assert "this" not in sys.modules


def test_without_code_no_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ends_the_process.py").write_text("import os\nos._exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with registry.without_own_code(), pytest.raises(registry.CodeNotRunError, match="ends_the_process:judge"):
        build_verifier("ends_the_process:judge")
    with registry.without_own_code():
        assert build_verifier("knights_knaves") == KnightsKnaves()


@pytest.mark.parametrize(
    ("spec", "code", "value"), REFUSED, ids=[getattr(case[0], "__name__", str(case[0])) for case in REFUSED]
)
def test_what_cannot_be_built_is_refused(spec: Any, code: str, value: str):
    with pytest.raises(PartError) as refusal:
        build_verifier(spec)
    assert refusal.value.code == code
    assert value in str(refusal.value)
