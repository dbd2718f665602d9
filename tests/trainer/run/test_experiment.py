"""What a run file means is made when it is asked for, once, and what is refused is no less refused again."""

import json
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from ruamel.yaml import YAML
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.errors import Refusal
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.run.config import evaluation_arguments
from evenkeel.trainer.run.evaluation import evaluation_trainer, exchange_policy
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT

QUICKSTART = ROOT / "configs" / "quickstart.yaml"


@pytest.mark.parametrize("beside", [{"advantage": "rloo"}, {"keep_groups": "step"}, {"prompt_sampler": "dynamic"}])
def test_strategies_that_would_have_no_effect_beside_built_ones_are_refused(beside: dict[str, str]):
    with pytest.raises(TypeError, match="strategies="):
        RLVRTrainer("no/such-model", strategies=build_strategies(), **beside)


@pytest.mark.parametrize(
    ("updates", "processes", "cut"),
    [(1, 2, "by_rank"), (2, 1, "over_all_ranks"), (2, 2, "over_all_ranks"), (8, 4, "by_rank")],
)
def test_rows_are_cut_over_all_ranks_where_each_rank_has_some_for_every_update(updates: int, processes: int, cut: str):
    rows = ["algorithm.prompts_per_rollout=4", f"algorithm.sequences_per_update={32 // updates}"]
    group = [
        "num_processes=null",
        "trl.num_generations=8",
        "trl.per_device_train_batch_size=1",
        "algorithm.keep_groups=step",
    ]
    assert Experiment.of_file(QUICKSTART, [*rows, *group], processes=processes).cut == cut


COUNTDOWN = ROOT / "configs" / "tiny_policy" / "countdown"


def test_an_adapter_is_merged_in_the_precision_that_it_was_trained_in(tmp_path: Path):
    torch.manual_seed(0)
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    AutoModelForCausalLM.from_pretrained(COUNTDOWN, dtype=torch.bfloat16).save_pretrained(base)
    AutoTokenizer.from_pretrained(COUNTDOWN).save_pretrained(adapter)
    lora = LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    trained = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), lora).eval()
    trained.save_pretrained(adapter)
    changes = [f"model.name_or_path={adapter}", "evaluation.batch_size=2"]
    experiment = Experiment.of_file(ROOT / "configs" / "quickstart.yaml", changes, evaluation_only=True)
    trainer = evaluation_trainer(experiment, evaluation_arguments(experiment.config, str(tmp_path / "out")))
    tokens = torch.arange(1, 17).unsqueeze(0)
    assert (trainer.model(tokens).logits - trained(tokens).logits).abs().max() < 1e-4
    for name, weights in trained.named_parameters():
        weights.data *= 2 if "lora_B" in name else 1  # a later checkpoint
    trained.save_pretrained(tmp_path / "checkpoint-7")
    exchange_policy(trainer, experiment.config, str(tmp_path / "checkpoint-7"))
    assert (trainer.model(tokens).logits - trained(tokens).logits).abs().max() < 1e-4
    assert trainer.state.global_step == 7


ROWS = [{"prompt": f"{n} + 1?", "reference": str(n + 1) if n % 3 else ""} for n in range(1, 8)]  # 3 and 6 have none


def test_a_few_are_left_out_of_training_and_held_out_rows_never(tmp_path: Path):
    for name, rows in (("rows", ROWS), ("two", ROWS[:2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {"train": {"path": "rows.jsonl"}, "test": {"path": "two.jsonl"}, "max_unusable": 2}
    run = {"model": {"name_or_path": "none"}, "data": data, "rewards": [{"verifier": "math_answer"}]}
    YAML(typ="safe").dump(run, tmp_path / "run.yaml")
    rows = Experiment.of_file(tmp_path / "run.yaml").rows
    remaining = [messages[-1]["content"] for messages in rows["train"]["prompt"]]
    assert remaining == ["1 + 1?", "2 + 1?", "4 + 1?", "5 + 1?", "7 + 1?"]
    assert len(rows["test"]) == 2
    held_out = Experiment.of_file(tmp_path / "run.yaml", ["data.test.path=rows.jsonl"])
    with pytest.raises(Refusal, match=r"data\.test, math_answer"):
        assert held_out.rows
