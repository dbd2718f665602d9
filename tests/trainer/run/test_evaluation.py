"""`evaluate` scores the policy that was trained."""

from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.trainer.run.config import evaluation_arguments
from evenkeel.trainer.run.evaluation import evaluation_trainer
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT

COUNTDOWN = ROOT / "configs" / "tiny_policy" / "countdown"


def test_an_adapter_is_merged_in_the_precision_that_it_was_trained_in(tmp_path: Path):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    AutoModelForCausalLM.from_pretrained(COUNTDOWN, dtype=torch.bfloat16).save_pretrained(base)
    AutoTokenizer.from_pretrained(COUNTDOWN).save_pretrained(adapter)
    lora = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    trained = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), lora).eval()
    trained.save_pretrained(adapter)
    changes = [f"model.name_or_path={adapter}", "evaluation.batch_size=2"]
    experiment = Experiment.of_file(ROOT / "configs" / "quickstart.yaml", changes, evaluation_only=True)
    found = evaluation_trainer(experiment, evaluation_arguments(experiment.config, str(tmp_path / "out"))).model
    tokens = torch.arange(1, 17).unsqueeze(0)
    assert (found(tokens).logits - trained(tokens).logits).abs().max() < 1e-4
