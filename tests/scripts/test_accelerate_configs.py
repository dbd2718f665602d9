"""Every file of configs/accelerate is one that accelerate accepts, and says what it would be costly to find missing."""

from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import launch_command_parser

from tests.paths import ROOT

FOLDER = ROOT / "configs" / "accelerate"
FILES = sorted(FOLDER.glob("*.yaml"))
pytestmark = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def test_accelerate_reads_all_of_it(file: Path) -> None:
    """`accelerate launch` would ignore an unknown key of a nested section without a word."""
    config = load_config_from_file(str(file))
    assert isinstance(config, ClusterConfig)
    options = {action.dest for action in launch_command_parser()._actions}
    assert {*config.deepspeed_config, *config.fsdp_config} <= options


def test_what_would_be_costly_to_find_wrong_is_right(file: Path) -> None:
    config = yaml.safe_load(file.read_text())
    assert config["mixed_precision"] == ("no" if file.stem == "cpu_two_processes" else "bf16")
    if config["num_machines"] == 1 and config["num_processes"] > 1:
        assert config["main_process_port"] == 0  # a port of its own
    # `use_cpu: true` and MULTI_CPU start one process, whatever num_processes says
    assert config["use_cpu"] is False
    assert config["distributed_type"] != "MULTI_CPU"
    if config["distributed_type"] == "FSDP":  # another type of state writes a checkpoint without weights, and exits 0
        assert config["fsdp_config"]["fsdp_version"] == 2
        assert config["fsdp_config"]["fsdp_state_dict_type"] == "FULL_STATE_DICT"
    deepspeed = config.get("deepspeed_config", {})
    stage = {"multi_node": 3}.get(file.stem, int(file.stem[4]) if file.stem.startswith("zero") else None)
    assert deepspeed.get("zero_stage") == stage
    if stage is not None:
        offloaded = "cpu" if file.stem.endswith("_offload") else "none"
        assert deepspeed["offload_optimizer_device"] == offloaded
        assert deepspeed["offload_param_device"] == (offloaded if stage == 3 else "none")
        assert deepspeed["deepspeed_multinode_launcher"] == "standard"  # no ssh
        assert stage < 3 or deepspeed["zero3_save_16bit_model"] is True  # else a checkpoint has no weights
