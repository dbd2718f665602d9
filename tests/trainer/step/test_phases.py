"""Where the time of a step goes: phases exclude each other, are logged for every step, and leave evaluations out."""

import time
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from transformers import AutoConfig
from trl.trainer.utils import compute_flops_per_token

from evenkeel.trainer.step.metrics import Means, Throughput
from evenkeel.trainer.step.phases import TIMED
from tests.trainer.training import digit_reward, ours


def test_every_log_holds_every_phase_and_they_add_up_to_the_step(tiny_model, tmp_path: Path):
    def slow(completions, **_):
        time.sleep(0.2)
        return digit_reward(completions)

    started = time.perf_counter()
    trainer = ours(tiny_model, tmp_path, reward=slow, num_iterations=2, beta=0.04, max_steps=3)
    whole = time.perf_counter() - started
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logs) == 3
    names = {f"timing/{name}_s" for name in TIMED}
    assert all({name for name in entry if name.startswith("timing/")} == names for entry in logs)
    generates, reuses = logs[0], logs[1]
    for name in ("generate", "verify_wait", "old_logps", "reference"):
        assert generates[f"timing/{name}_s"] > 0
        assert reuses[f"timing/{name}_s"] == 0
    assert generates["timing/verify_wait_s"] >= 0.2
    assert all(entry["timing/update_s"] > 0 and entry["timing/sync_s"] == 0 for entry in logs)
    assert logs[0]["timing/log_s"] == 0 < logs[1]["timing/log_s"]
    total = sum(entry[f"timing/{name}_s"] for entry in logs for name in TIMED)
    steps = sum(entry["step_time"] for entry in logs)
    assert steps <= total <= whole
    seconds = sum(generates[f"timing/{name}_s"] for name in TIMED)
    assert generates["perf/trained_tokens_per_second"] * seconds == pytest.approx(generates["num_tokens"])
    completions = generates["completions/mean_length"] * trainer.args.per_device_train_batch_size
    assert generates["perf/generated_tokens_per_second"] * seconds == pytest.approx(completions)
    assert reuses["perf/generated_tokens_per_second"] == 0 < reuses["perf/trained_tokens_per_second"]


def test_model_flops_are_those_of_each_row_over_the_seconds_of_the_update(tiny_model):
    config, means = AutoConfig.from_pretrained(tiny_model), Means()
    throughput = Throughput(config, torch.device("cpu"), torch.float32)
    per_layer = type("PerLayer", (), {"hidden_size": property(lambda _: 1 / 0)})()  # a model that TRL cannot estimate
    assert throughput.peak is Throughput(per_layer, torch.device("cpu"), torch.float32).peak is None
    throughput.peak = 1e9
    masks = {"prompt_mask": torch.tensor([[0, 1], [1, 1]]), "completion_mask": torch.tensor([[1, 1, 0], [1, 1, 1]])}
    throughput.trained(means, masks)
    throughput.end_step(means, {"timing/update_s": 2.0, "timing/generate_s": 6.0})
    flops, logged = sum(n * compute_flops_per_token(config, n) for n in (3, 5)), means.read(Accelerator())
    assert logged["perf/mfu"] == pytest.approx(100 * flops / 1e9 / 2.0)
    assert logged["perf/trained_tokens_per_second"] == (3 + 5) / 8.0
