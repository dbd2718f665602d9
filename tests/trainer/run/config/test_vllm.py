"""What a run's file says of vLLM: the section of that name, and TRL's own words."""

from dataclasses import asdict
from pathlib import Path

import pytest

from tests.trainer.run.config.test_config import found, load

COLOCATED = "use_vllm: true, vllm_mode: colocate"
SERVED = "use_vllm: true, vllm_mode: server"
TRUNCATED = "vllm_importance_sampling_mode: token_truncate"
EVERY_OTHER = "vllm: {check_agreement_every: 2}\n"


def trl(settings: str) -> str:
    return f"trl: {{{settings}}}\n"


@pytest.mark.parametrize(
    ("refused", "path", "code", "instead"),
    [
        (EVERY_OTHER, "vllm", "vllm-section-without-vllm", EVERY_OTHER + trl(COLOCATED)),
        (
            trl(f"{COLOCATED}, vllm_server_port: 1"),
            "trl.vllm_server_port",
            "vllm-server-port-while-colocate",
            trl(COLOCATED),
        ),
        (
            trl(f"{SERVED}, vllm_max_model_length: 9"),
            "trl.vllm_max_model_length",
            "vllm-max-model-length-while-server",
            trl(f"{SERVED}, vllm_server_port: 1"),
        ),
        (
            trl(f"{COLOCATED}, vllm_gpu_memory_utilization: 0.95"),
            "trl.vllm_gpu_memory_utilization",
            "vllm-takes-the-gpu",
            trl(COLOCATED),
        ),
        (
            trl(f"{COLOCATED}, {TRUNCATED}, vllm_importance_sampling_clip_max: null"),
            "trl.vllm_importance_sampling_clip_max",
            "nothing-to-truncate-to",
            trl(f"{COLOCATED}, {TRUNCATED}, vllm_importance_sampling_clip_max: 3.0"),
        ),
        (
            trl(COLOCATED) + "vllm: {agreement_bound: 0}\n",
            "vllm.agreement_bound",
            "greater-than",
            trl(COLOCATED) + EVERY_OTHER,
        ),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, refused: str, path: str, code: str, instead: str) -> None:
    assert found(tmp_path, refused) == [(path, code)]
    load(tmp_path, instead)


def test_every_sync_is_checked_unless_the_file_says_how_often(tmp_path: Path) -> None:
    assert load(tmp_path, trl(COLOCATED)).vllm is None
    section = load(tmp_path, trl(COLOCATED) + EVERY_OTHER).vllm
    assert section is not None
    assert asdict(section.options) == {"check_agreement_every": 2, "agreement_bound": None}
