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


def test_all_the_ways_to_launch_are_there() -> None:
    assert {file.stem for file in FILES} == {
        "one_gpu", "ddp", "zero1", "zero2", "zero2_offload", "zero3", "zero3_offload", "fsdp2", "multi_node",
        "cpu_two_processes",
    }  # fmt: skip


@every_file
def test_accelerate_reads_it(file: Path) -> None:
    config = load_config_from_file(str(file))
    assert isinstance(config, ClusterConfig)
    assert unknown_nested_keys(config) == set()


def test_a_misspelt_key_is_noticed(tmp_path: Path) -> None:
    outer, nested = tmp_path / "outer.yaml", tmp_path / "nested.yaml"
    zero3 = settings(FOLDER / "zero3.yaml")
    outer.write_text(yaml.safe_dump({**zero3, "num_procesess": 8}))
    with pytest.raises(ValueError, match="num_procesess"):
        load_config_from_file(str(outer))
    nested.write_text(yaml.safe_dump({**zero3, "deepspeed_config": {**zero3["deepspeed_config"], "zero_stagee": 3}}))
    assert unknown_nested_keys(load_config_from_file(str(nested))) == {"zero_stagee"}


@every_file
def test_its_header_gives_the_command_the_hardware_and_what_was_run(file: Path) -> None:
    header = [line for line in file.read_text().splitlines() if line.startswith("#")]
    text = "\n".join(header)
    assert f"evenkeel launch --config_file accelerate/{file.stem} " in text
    for said in ("Hardware:", "For", "Run:"):
        assert said in text, f"{file.name} does not say {said!r}"


@every_file
def test_gpus_train_in_bf16_and_the_cpu_does_not(file: Path) -> None:
    assert settings(file)["mixed_precision"] == ("no" if file.stem == "cpu_two_processes" else "bf16")


@every_file
def test_a_run_on_one_node_takes_a_port_of_its_own(file: Path) -> None:
    config = settings(file)
    if config["num_machines"] == 1 and config["num_processes"] > 1:
        assert config["main_process_port"] == 0


@every_file
def test_weights_reach_the_disk(file: Path) -> None:
    """Both alternatives write a checkpoint without weights, and exit 0."""
    config = settings(file)
    if config.get("deepspeed_config", {}).get("zero_stage") == 3:
        assert config["deepspeed_config"]["zero3_save_16bit_model"] is True
    if config["distributed_type"] == "FSDP":
        assert config["fsdp_config"]["fsdp_version"] == 2
        assert config["fsdp_config"]["fsdp_state_dict_type"] == "FULL_STATE_DICT"


@every_file
def test_deepspeed_starts_on_several_nodes_without_ssh(file: Path) -> None:
    config = settings(file)
    if config["distributed_type"] == "DEEPSPEED":
        assert config["deepspeed_config"]["deepspeed_multinode_launcher"] == "standard"


@every_file
def test_a_file_does_what_its_name_says(file: Path) -> None:
    config = settings(file).get("deepspeed_config", {})
    stage = {"multi_node": 3}.get(file.stem, int(file.stem[4]) if file.stem.startswith("zero") else None)
    assert config.get("zero_stage") == stage
    offloaded = "cpu" if file.stem.endswith("_offload") else "none"
    if stage is not None:
        assert config["offload_optimizer_device"] == offloaded
        assert config["offload_param_device"] == (offloaded if stage == 3 else "none")


@every_file
def test_no_file_asks_for_the_cpu_through_accelerate(file: Path) -> None:
    """`use_cpu: true` and MULTI_CPU start one process, whatever num_processes says."""
    config = settings(file)
    assert config["use_cpu"] is False
    assert config["distributed_type"] != "MULTI_CPU"
