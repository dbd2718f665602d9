"""What users of other tools type is what they mean here, or refused in one line; nothing of it is lost."""

import re
import shlex
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from accelerate.commands.launch import launch_command_parser
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.command.terminal import fitted
from evenkeel.trainer.command.train import _written
from evenkeel.trainer.command.translation import _declared, _of_launcher, translated
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.config.wording import SECTIONS, fields_of
from evenkeel.trainer.run.launcher import parsed

TYPED = """
train quickstart --learning_rate 1e-5 --bf16  →  train quickstart trl.learning_rate=1e-5 trl.bf16=true
train --trl.beta=.1 --config=x.yaml --seed 3  →  train x.yaml trl.beta=.1 seed=3
train --report_to wandb quickstart --max_steps -1  →  train quickstart logging.report_to=[wandb] trl.max_steps=-1
train x.yaml --run_name 'a: b' --bf16 no  →  train x.yaml 'name="a: b"' trl.bf16=false
train --data D --reward a.b c  →  train data.train.path=D 'rewards=[{verifier: "a:b"}, {verifier: c}]'
train x.yaml --resume_from_checkpoint runs/x  →  train x.yaml --resume runs/x
train x.yaml --resume seed=3  →  train x.yaml seed=3 --resume
launch x.yaml --num_processes 2 --lr 1 seed=1  →  launch --num_processes 2 x.yaml trl.learning_rate=1 seed=1
launch --cpu --model M  →  launch --cpu -m evenkeel train model.name_or_path=M
launch -m evenkeel evaluate A B --beta 1  →  launch -m evenkeel evaluate A B --beta 1
check quickstart --num_processes 8  →  check quickstart --processes 8
sweep quickstart  →  sweep run quickstart
train x.yaml --num_processes 2  →  evenkeel launch
train x.yaml --num_proceses 2  →  --num_processes
train x.yaml --use_peft  →  model.lora
train x.yaml --scale_rewards none  →  algorithm.advantage
train x.yaml --beta --bf16  →  --beta
"""
"""What is typed → what is meant, or a word of the refusal."""
WORDS = """quickstart,--learning_rate 1e-5,--max_steps -1,--trl.beta=0.5,--bf16,--report_to wandb,--reward my.rule
--json,--config x.yaml,--bf16 true,seed=7,--num_processes 2,--use_peft,--resume,--model,--cpu,--accept-changes
--output_dir #,é:"""


def meant(typed: list[str]) -> list[str]:
    command, *words = typed
    try:
        return [command, *translated(command, words, import_module(f"evenkeel.trainer.command.{command}").parser)]
    except Refusal as refusal:
        return str(refusal).split("\n")


@pytest.mark.parametrize("line", TYPED.strip().splitlines())
def test_what_is_typed_elsewhere_is_what_is_meant_here(line: str):
    typed, expected = line.split("  →  ")
    found = meant(shlex.split(typed))
    assert found == shlex.split(expected) if len(found) > 1 else expected in found[0]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["train", "check", "launch"]), st.lists(st.sampled_from(re.split("[,\n]", WORDS)), max_size=4))
def test_every_line_is_parsed_or_refused_in_one_and_each_word_counts(command: str, typed: list[str]):
    words = " ".join(typed).split()
    line = meant([command, *words])
    if line[0] != command:
        assert len(line) == 1
        return
    of_command = import_module(f"evenkeel.trainer.command.{command}").parser().parse_intermixed_args
    with suppress(Refusal, SystemExit):
        (parsed if command == "launch" else of_command)(line[1:])
    for place, word in enumerate(words):
        fewer = [command, *words[:place], *words[place + 1 :]]
        assert word in ("--config", "--reward", "true") or meant(fewer) != line, word


def test_names_read_in_sources_are_those_of_the_libraries():
    actions = launch_command_parser()._actions
    taken = {name.lstrip("-").replace("-", "_"): each.nargs != 0 for each in actions for name in each.option_strings}
    assert _of_launcher() == taken
    assert {name for section in SECTIONS for name in fields_of(section)} <= _declared()


def test_a_run_without_a_file_writes_the_one_that_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").touch()
    given = ["model.name_or_path=org/M", "data.train.path=rows.jsonl", "rewards=[{verifier: exact_match}]"]
    made = [_written(each) for each in (given, given, [*given, "trl.beta=0.5"])]
    assert made == ["M-rows.yaml", "M-rows.yaml", "M-rows-2.yaml"]
    assert load_config("M-rows-2.yaml").trl["beta"] == 0.5
    for wrong in (given[:2], [*given, "trl.beta=x"], [*given, "rewards=[{verifier: exact_mtch}]"]):
        with pytest.raises(Refusal):
            _written(wrong)
    assert len([*tmp_path.glob("*.yaml")]) == 2


def test_what_is_printed_fits_a_terminal_and_can_be_copied():
    wrapped = ["Type `evenkeel train a_run.yaml --resume a_run` or name another file.", f"name      {'word ' * 20}"]
    copied = [f"    evenkeel {'x ' * 30}", f"| {'cell | ' * 9}", "/a" * 30]
    shown = fitted("\n".join([*wrapped, *copied]), 44).splitlines()
    assert shown[:2] == ["Type", "  `evenkeel train a_run.yaml --resume a_run`"]
    assert f"          {'word ' * 6}".rstrip() in shown
    assert [line for line in shown if len(line) > 44] == copied
    assert " ".join(shown).split() == " ".join([*wrapped, *copied]).split()
