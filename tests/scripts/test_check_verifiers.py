"""The command that tries verifiers on data, on real files; and that each kind of leak is found."""

import importlib.util
import json

import pytest

from tests.paths import ROOT

HOLES = '''
from evenkeel.rewards import Verdict
from tests.paths import ROOT


def graded(completion, reference, *, hole: str = "none"):
    """Right where the completion is "answer " and the reference; each hole is a mistake of a verifier."""
    if hole == "refuses gold" and reference == "2":
        return Verdict(0.0, None, "a hole")
    if hole == "pays nothing" and completion == "":
        return Verdict(1.0, None, "a hole")
    if hole == "pays in part" and "import" in completion:
        return Verdict(0.1, None, "a hole")
    if hole == "pays echoes" and completion.endswith("half of 2?"):
        return Verdict(1.0, None, "a hole")
    if hole == "pays neighbours" and completion in ("answer 1", "answer 2", "answer 3"):
        return Verdict(1.0 if completion == "answer 3" or completion[-1] == reference else 0.0, None, "a hole")
    if hole == "raises" and "\\x00" in completion:
        raise RuntimeError("a hole")
    return Verdict(float(completion == f"answer {reference}"), completion[:20], "compared")
'''


def script(name):
    specification = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.main


@pytest.fixture
def data(tmp_path, monkeypatch):
    questions = ["What is half of 2?", "What is half of 4?", "What is half of 6?"]
    rows = [{"question": question, "gold": str(place + 1)} for place, question in enumerate(questions)]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = "\n\nfrom evenkeel.rewards.verifier import Verifier\n\n\nclass Graded(Verifier):\n"
    gold += "    def __init__(self, hole: str = 'none') -> None:\n        self.hole = hole\n\n"
    gold += "    def __call__(self, completion, reference):\n"
    gold += "        return graded(completion, reference, hole=self.hole)\n\n"
    gold += "    def gold_completion(self, reference):\n        return f'answer {reference}'\n"
    (tmp_path / "holes.py").write_text(HOLES + gold)
    monkeypatch.syspath_prepend(str(tmp_path))
    return ["--data", str(path), "--prompt", "question", "--reference", "gold"]


def test_a_sound_verifier_has_no_leak(data, capsys):
    assert script("check_verifiers")([*data, "--verifier", "holes:Graded"]) == 0
    printed = capsys.readouterr().out
    assert "no leak" in printed
    assert "gold " in printed


@pytest.mark.parametrize(
    ("hole", "kind", "problem"),
    [
        ("refuses gold", "gold", "the gold answer is refused"),
        ("pays in part", "adversarial", "paid in part"),
        ("pays echoes", "echo", "paid in full"),
        ("pays neighbours", "other row", "paid in full"),
        ("raises", "adversarial", "unscored, though the reference can be used"),
    ],
)
def test_each_kind_of_leak_is_found(data, capsys, hole, kind, problem):
    spec = f"{{name: 'holes:Graded', hole: '{hole}'}}"
    assert script("check_verifiers")([*data, "--verifier", spec, "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)
    assert (kind, problem) in {(leak["kind"], leak["problem"]) for leak in result["leaks"]}


def test_a_configuration_is_checked_on_its_own_data(capsys):
    arguments = ["--config", str(ROOT / "configs" / "quickstart.yaml"), "--rows", "20", "--json"]
    assert script("check_verifiers")(arguments) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["verifier"] for result in results] == ["countdown on data.train", "countdown on data.test.test"]
    assert all(result["trials"]["gold"]["right"] == 20 for result in results)
