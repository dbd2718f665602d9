"""A base model without a chat template, on rows that are fed as they are: trained, resumed, evaluated, exported."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.rewards import Verdict
from evenkeel.trainer.command.evaluate import main as evaluate
from evenkeel.trainer.command.export import main as export
from evenkeel.trainer.command.train import main as train
from evenkeel.trainer.run.check.check import checked
from tests.scripts.test_train import write_run

TEXTS = [f"<|im_start|> user {letter} 1 assistant <think>" for letter in "abcdefgh"]


def odd(completion: str, reference: Any) -> Verdict:
    """Right where the thought that the prompt opens has an odd number of different characters."""
    return Verdict(float(len({*completion}) % 2), None, str(completion.startswith("<think>")))


@pytest.mark.slow
def test_a_base_model_reads_the_texts_of_its_rows(tiny_model: Path, tmp_path: Path):
    base, run = shutil.copytree(tiny_model, tmp_path / "base"), tmp_path / "run"
    (base / "chat_template.jinja").unlink()
    rows = [{"prompt": [{"role": "user", "content": each}], "reference": "1"} for each in TEXTS]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    given: dict[str, Any] = {"model": {"name_or_path": str(base), "chat_template": "raw"}}
    given["data"] = {part: {"path": "rows.jsonl"} for part in ("train", "test")}
    given |= {"rewards": [{"verifier": "tests.scripts.test_raw_prompts:odd"}], "evaluation": {"greedy": True}}
    given |= {"algorithm": {"sequences_per_update": 8}, "trl": {"per_device_train_batch_size": 8}}  # π_old is scored
    file = write_run(tmp_path, base, **given)
    found = {problem.code: problem.what for problem in checked(str(file), [], processes=None).problems}
    assert {*found} == {"raw-prompts", "markup-of-another-model", "held-out-rows-trained"}
    assert "assistant <think>" in found["raw-prompts"]

    assert train([str(file)]) == 0
    texts = [AutoTokenizer.from_pretrained(base)(text)["input_ids"] for text in TEXTS]
    for batch, policy in enumerate((base, run / "checkpoint-2")):
        model = AutoModelForCausalLM.from_pretrained(policy)
        for row in parquet.read_table(run / "rollouts" / f"batch-{batch:06d}-rank-0.parquet").to_pylist():
            asked = row["prompt_ids"]
            assert asked in texts
            ids = torch.tensor([[*asked, *row["completion_ids"]]])
            logps = model(ids).logits[0, len(asked) - 1 : -1].log_softmax(-1)
            own = logps.gather(-1, ids[0, len(asked) :, None])[:, 0].tolist()
            assert row["old_logps"] == pytest.approx(own, abs=1e-4)
    evaluated = parquet.read_table(run / "evaluations" / "test" / "step-000004.parquet").to_pylist()
    assert [(row["prompt"], row["odd/reason"]) for row in evaluated] == [(text, "True") for text in TEXTS]

    weights = (run / "checkpoint-4" / "model.safetensors").read_bytes()
    assert weights != (run / "checkpoint-2" / "model.safetensors").read_bytes()
    shutil.rmtree(run / "checkpoint-4")
    assert train([str(file), "--resume", str(run)]) == 0
    assert (run / "checkpoint-4" / "model.safetensors").read_bytes() == weights

    to = tmp_path / "exported"
    assert export([str(run), "--to", str(to)]) == 0
    assert 'prompt = tokenizer("…", return_tensors="pt")' in (to / "README.md").read_text()
    assert AutoTokenizer.from_pretrained(to).chat_template is None
    assert evaluate([str(to), str(file), "--output", str(tmp_path / "again")]) == 0
    (again,) = [parquet.read_table(each).to_pylist() for each in (tmp_path / "again").rglob("*.parquet")]
    assert [row["completion"] for row in again] == [row["completion"] for row in evaluated]
