"""Every rule of a run file: what breaks it and what just does not; none is without a test."""

import math
import re
from typing import Any

import pytest
import torch

from evenkeel.trainer.algorithms.engine_ratio import engine_ratio
from evenkeel.trainer.run.config.rules import RULES, Given, warnings_of


def trl(**arguments: Any) -> Given:
    return Given({"trl": arguments})


def kwargs(**arguments: Any) -> Given:
    return trl(generation_kwargs=arguments)


LONG = {"use_vllm": True, "max_completion_length": 4096, "vllm_importance_sampling_mode": "sequence_truncate"}
MASKED = LONG | {"vllm_importance_sampling_mode": "sequence_mask"}
COLOCATED, SERVED = {"use_vllm": True, "vllm_mode": "colocate"}, {"use_vllm": True, "vllm_mode": "server"}
BROKEN_AND_KEPT: list[tuple[str, Given, Given]] = [
    ("one-token", trl(top_k=1), trl(top_k=2)),
    ("one-token", trl(temperature=0.009), trl(temperature=0.01)),
    ("one-token", trl(top_p=0.049), trl(top_p=0.05)),
    ("one-token", trl(min_p=1.0), trl(min_p=0.9)),
    ("generation-kwargs", kwargs(max_length=9), kwargs(renormalize_logits=True)),
    ("generation-kwargs", kwargs(do_sample=False), kwargs(do_sample=True)),
    ("generation-kwargs", kwargs(num_beams=2), kwargs(num_beams=1)),
    ("no-effect", Given({"vllm": {}}), Given({"vllm": {}, "trl": {"use_vllm": True}})),
    ("no-effect", trl(**COLOCATED, vllm_server_port=1), trl(**SERVED, vllm_server_port=1)),
    ("no-effect", trl(vllm_mode="server"), trl(vllm_mode="server", use_vllm=True)),
    ("no-effect", trl(num_train_epochs=2, max_steps=5), trl(num_train_epochs=2)),
    ("no-effect", trl(entropy_target=0.5), trl(entropy_target=0.5, use_adaptive_entropy=True)),
    ("no-effect", trl(ref_model_sync_steps=5), trl(ref_model_sync_steps=5, sync_ref_model=True)),
    ("no-effect", trl(save_steps=5, save_strategy="no"), trl(save_steps=5)),
    ("no-effect", trl(fsdp_config="fsdp.json"), trl(fsdp_config="fsdp.json", fsdp=True)),
    ("no-effect", trl(sapo_temperature_neg=1.0), trl(sapo_temperature_neg=1.0, loss_type="sapo")),
    (
        "no-effect",
        Given({"evaluation": {"temperature": 1.0, "greedy": True}}),
        Given({"evaluation": {"temperature": 1.0, "greedy": True, "samples": 2}}),
    ),
    ("no-effect", trl(delta=4.0, loss_type="sapo"), trl(delta=4.0, loss_type="grpo")),
    (
        "no-effect",
        trl(max_tool_calling_iterations=3),
        Given({"trl": {"max_tool_calling_iterations": 3}, "tools": ["python_tool"]}),
    ),
    (
        "no-effect",
        Given({"model": {"name_or_path": "/", "revision": "main"}}),
        Given({"model": {"name_or_path": "somebody/model", "revision": "main"}}),
    ),
    (
        "correction-of-long-responses",
        trl(use_vllm=True, max_completion_length=500),  # sequence_mask and 3.0 are TRL's defaults
        trl(use_vllm=True, max_completion_length=300),
    ),
    ("correction-of-long-responses", trl(**LONG), trl(**LONG, bf16=False)),
    ("correction-of-long-responses", trl(**LONG), trl(**LONG | {"vllm_importance_sampling_mode": "token_mask"})),
    ("correction-of-long-responses", trl(**MASKED), trl(**MASKED, vllm_importance_sampling_clip_max=None)),
    ("correction-of-long-responses", trl(**LONG), trl(**LONG, vllm_importance_sampling_clip_max=1000.0)),
]


def codes(given: Given) -> list[str]:
    return [problem.code for rule in RULES for problem in rule.problems(given)]


@pytest.mark.parametrize(("code", "broken", "kept"), BROKEN_AND_KEPT)
def test_a_rule_is_broken_and_kept(code: str, broken: Given, kept: Given):
    assert {each for each, *_ in BROKEN_AND_KEPT} == {rule.code for rule in RULES}
    assert codes(broken).count(code) == 1
    assert code not in codes(kept)


def test_what_a_bound_leaves_of_a_response_is_what_the_correction_leaves_of_simulated_ones():
    """log ρ of each token normal with 0.03 around −0.03²/2; 20,000 responses of 4,096 tokens at once."""
    draws = torch.Generator().manual_seed(0)
    total = 0.03 * math.sqrt(4096) * torch.randn(20_000, 1, generator=draws) - 0.03**2 / 2 * 4096
    one = torch.ones(20_000, 1, dtype=torch.long)
    for mode in ("sequence_mask", "sequence_truncate"):
        left = engine_ratio(total, torch.zeros_like(total), one, mode, None, 3.0).mean().item()
        (problem,) = warnings_of(trl(**LONG | {"vllm_importance_sampling_mode": mode}))
        (said,) = re.findall(r"(\d+)% of the gradient", problem.what)
        assert int(said) == pytest.approx(100 * left, abs=2)
        assert f"Write {mode.replace('sequence', 'token')}" in problem.what
