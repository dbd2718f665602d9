"""Every file of configs/accelerate is one that accelerate accepts, and says what it would be costly to find missing."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import launch_command_parser

from tests.paths import ROOT

FOLDER = ROOT / "configs" / "accelerate"
FILES = sorted(FOLDER.glob("*.yaml"))
NESTED = ("deepspeed_config", "fsdp_config")

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def settings(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())


def unknown_nested_keys(config: ClusterConfig) -> set[str]:
    """Keys of the nested sections that are no option of `accelerate launch`, which would ignore them without a word."""
    options = {action.dest for action in launch_command_parser()._actions}
    return {key for section in NESTED for key in getattr(config, section)} - options


@every_file
def test_accelerate_reads_it(file: Path) -> None:
    config = load_config_from_file(str(file))
    assert isinstance(config, ClusterConfig)
    assert unknown_nested_keys(config) == set()


@every_file
def test_what_would_be_costly_to_find_wrong_is_right(file: Path) -> None:
    config = settings(file)
    assert config["mixed_precision"] == ("no" if file.stem == "cpu_two_processes" else "bf16")
    if config["num_machines"] == 1 and config["num_processes"] > 1:
        assert config["main_process_port"] == 0  # a port of its own
    # `use_cpu: true` and MULTI_CPU start one process, whatever num_processes says
    assert config["use_cpu"] is False
    assert config["distributed_type"] != "MULTI_CPU"
    if config["distributed_type"] == "FSDP":  # another type of state writes a checkpoint without weights, and exits 0
        assert config["fsdp_config"]["fsdp_version"] == 2
        assert config["fsdp_config"]["fsdp_state_dict_type"] == "FULL_STATE_DICT"


@every_file
def test_a_file_of_deepspeed_does_what_its_name_says(file: Path) -> None:
    config = settings(file).get("deepspeed_config", {})
    stage = {"multi_node": 3}.get(file.stem, int(file.stem[4]) if file.stem.startswith("zero") else None)
    assert config.get("zero_stage") == stage
    if stage is not None:
        offloaded = "cpu" if file.stem.endswith("_offload") else "none"
        assert config["offload_optimizer_device"] == offloaded
        assert config["offload_param_device"] == (offloaded if stage == 3 else "none")
        assert config["deepspeed_multinode_launcher"] == "standard"  # no ssh
        assert stage < 3 or config["zero3_save_16bit_model"] is True  # else a checkpoint has no weights
