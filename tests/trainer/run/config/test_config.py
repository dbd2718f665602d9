"""A YAML file becomes a RunConfig, or one error with everything that is wrong and what to write instead."""

import dataclasses
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from evenkeel.errors import Problem, Refusal
from evenkeel.trainer.run.config import RunConfig, load_config
from evenkeel.trainer.run.config.keys import FOREIGN, IN_ANOTHER_SECTION
from evenkeel.trainer.run.config.shipped import shipped_files
from evenkeel.trainer.run.config.trackers import TrackerName
from evenkeel.trainer.run.config.trl_arguments import CHOICES, RANGE_OF
from evenkeel.trainer.run.preflight import prepare_logging
from evenkeel.trainer.step.choices import SWITCHES
from evenkeel.trainer.step.options import Speed
from tests.paths import ROOT

OTHERS = ("accelerate/", "claims/", "evaluation/", "sweeps/")
RUNS = [path for name, path in shipped_files().items() if not name.startswith(OTHERS)]
OF_EACH_FOLDER = [*{path.parent: path for path in RUNS}.values()]
MINIMAL = """\
model: {name_or_path: hub/model}
data:
  train: {path: hub/rows, split: train}
rewards:
- verifier: exact_match
"""


def load(folder: Path, text: str = "", *overrides: str, name: str = "run.yaml") -> RunConfig:
    (folder / name).write_text(MINIMAL + text)
    return load_config(folder / name, overrides)


def problems(folder: Path, text: str, *overrides: str) -> tuple[Problem, ...]:
    """What is refused, in its order."""
    with pytest.raises(Refusal) as caught:
        load(folder, text, *overrides)
    return caught.value.problems


def found(folder: Path, text: str, *overrides: str) -> list[tuple[str, str]]:
    """Path and code of what is refused."""
    return [(problem.key, problem.code) for problem in problems(folder, text, *overrides)]


HELP = """
from contextlib import suppress
from evenkeel.trainer.command import COMMANDS
from evenkeel.trainer.command.__main__ import main
wrong = ["sweep run no.yaml", "train no.yaml", "claim", "launch no.yaml --wrong_option 1", "launch --num_processes"]
for words in [*wrong, *(f"{name} --help" for name in COMMANDS)]:
    with suppress(SystemExit):
        main(words.split())
from trainer.run import config, data
import sys
print({"torch", "transformers", "scipy.stats", "matplotlib"} & {*sys.modules})
"""


def test_reading_the_configuration_module_and_a_commands_help_need_neither_torch_nor_trl() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_what_a_file_leaves_out_has_the_published_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, name="kk-grpo.yaml")
    assert (config.name, config.output_dir, config.run_seed) == ("kk-grpo", "runs/kk-grpo", 42)
    assert (config.algorithm.advantage, config.algorithm.token_weight) == ("grpo", "uniform")
    assert (config.rewards[0].weight, config.rewards[0].label) == (1.0, "exact_match")
    assert config.logging.report_to == "none"
    assert config.trl == {}
    for name in ("two words", ".hidden", "cost$HOME"):
        with pytest.raises(Refusal, match=r"\.yaml: name: "):
            load(tmp_path, name=f"{name}.yaml")


def test_what_makes_a_run_faster_is_taken_where_the_file_says_nothing(tmp_path: Path) -> None:
    def speed(text: str = "") -> Speed:
        return load(tmp_path, text).speed_options

    decided: dict[str, Any] = {option: None for option in SWITCHES if option != "microbatches"}
    plain = Speed(microbatches="planned", **decided)
    assert speed() == plain
    given = speed("speed: {microbatches: trl, tokens_per_microbatch: 4096}\n")
    assert given == Speed(tokens_per_microbatch=4096, **decided)
    assert speed("common_random_numbers: true\n") == replace(plain, common_random_numbers=True)
    assert found(tmp_path, "speed: {microbatches: packed}\n") == [("speed.microbatches", "unknown-word")]


def test_everything_wrong_is_said_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = "modle: 3\nevaluation: {batch_size: 0}\nlogging: {rollouts: onlin}\nseed: -1\n"
    lines = [(each.origin.line, each.key) for each in problems(tmp_path, text) if each.origin]
    assert lines == [(6, "modle"), (7, "evaluation.batch_size"), (8, "logging.rollouts"), (9, "seed")]


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("modle: 3\n", "modle", "unknown-key"),
        ("learning_rate: 1e-6\n", "learning_rate", "in-another-section"),
        ("evaluation:\n", "evaluation", "model-type"),
        ("evaluation: {batch_size: 0}\n", "evaluation.batch_size", "greater-than-equal"),
        ("name: a/b\n", "name", "folder-name"),
        ("logging: {report_to: [wandbb]}\n", "logging.report_to.0", "unknown-word"),
        ("algorithm: {advantage: {epsilon: 1}}\n", "algorithm.advantage", "part-without-name"),
        ("algorithm: {advantage: {name: x, deep: [.inf]}}\n", "algorithm.advantage.deep.0", "finite-number"),
        ("trl: {learning_rate: '1e-6'}\n", "trl.learning_rate", "float-type"),
        ("trl: {learning_rate: 0}\n", "trl.learning_rate", "greater-than"),
        ("trl: {learning_rate: .nan}\n", "trl.learning_rate", "finite-number"),
        ("trl: {max_steps: 0}\n", "trl.max_steps", "literal-error"),
        ("trl: {max_completion_length: None}\n", "trl.max_completion_length", "int-type"),
        ("trl: {loss_type: dpao}\n", "trl.loss_type", "unknown-word"),
        ("trl: {lr_scheduler_kwargs: {min_lr: '1e-6'}}\n", "trl.lr_scheduler_kwargs.min_lr", "number-as-text"),
        (
            "trl: {lr_scheduler_kwargs: {deep: {min_lr: .inf}}}\n",
            "trl.lr_scheduler_kwargs.deep.min_lr",
            "finite-number",
        ),
        ("trl: {generation_kwargs: {a: [1, .nan]}}\n", "trl.generation_kwargs.a.1", "finite-number"),
        ("trl: {output_dir: x}\n", "trl.output_dir", "in-another-section"),
        ("trl: {seed: 1}\n", "trl.seed", "in-another-section"),
    ],
)
def test_a_wrong_value_is_refused_at_its_line(tmp_path: Path, text: str, path: str, code: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert (problem.key, problem.code) == (path, code)
    assert str(problem.origin) == f"{tmp_path}/run.yaml, line 6"


@pytest.mark.parametrize(
    ("override", "path", "code"),
    [
        ("model.dtype=bf16", "model.dtype", "unknown-word"),
        ("data.train={path: x, generator: y}", "data.train.generator", "one-source"),
        ("data.test={generator: x, split: test}", "data.test.split", "option-of-a-path"),
        ("data.train.columns={reference: 3}", "data.train.columns.reference", "string-type"),
        ("rewards.0.weight=.nan", "rewards.0.weight", "finite-number"),
        ("rewards=[{verifier: a}, {verifier: a}]", "rewards.1", "label-twice"),
        ('name="a\\0b"', "name", "folder-name"),
        ("trl.adam_beta1=1", "trl.adam_beta1", "less-than"),
        ("model.quantization={load_in_4bit: true}", "model.quantization", "quantization-without-lora"),
        ("model={lora: {}, quantization: {load_in_4bit: false}}", "model.quantization", "not-4-bits"),
        ("model.quantization={load_in_4bit: true, bnb_4bit: nf4}", "model.quantization.bnb_4bit", "unknown-key"),
        ("data.train.columns={prompt: a, reference: a}", "data.train.columns.reference", "reference-is-prompt"),
        ("data.train.columns={environment: [seed]}", "data.train.columns.environment", "columns-of-no-environment"),
        ("data.train.columns={environment: [task]}", "data.train.columns.environment", "name-of-an-argument"),
    ],
)
def test_a_wrong_override_is_blamed_on_the_command_line(tmp_path: Path, override: str, path: str, code: str) -> None:
    (problem,) = problems(tmp_path, "", override)
    assert (problem.key, problem.code, str(problem.origin)) == (path, code, "command line")


def test_what_is_read_to_evaluate_alone_may_sample_as_it_likes(tmp_path: Path) -> None:
    assert found(tmp_path, "", "trl.top_k=1") == [("trl.top_k", "one-token")]
    (tmp_path / "run.yaml").write_text(MINIMAL.replace("train:", "test:"))
    assert load_config(tmp_path / "run.yaml", ["trl.top_k=1"], evaluation_only=True).trl == {"top_k": 1}


def test_a_reward_for_a_task_that_no_row_has_is_refused(tmp_path: Path) -> None:
    assert sorted(found(tmp_path, "", "rewards.0.task=a", "data.train.task=b")) == [
        ("data.train.task", "task-without-reward"),
        ("rewards.0.task", "task-without-rows"),
    ]


def test_a_missing_section_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("name: x\nmodel:\n  dtype: auto\n")
    with pytest.raises(Refusal) as caught:
        load_config(tmp_path / "run.yaml")
    missing = {(problem.key, problem.code): problem.origin for problem in caught.value.problems}
    assert {*missing} == {(path, "missing-key") for path in ("model.name_or_path", "data", "rewards")}
    assert str(missing["model.name_or_path", "missing-key"]) == f"{tmp_path}/run.yaml, line 2"


@pytest.mark.parametrize(
    "argument",
    [
        "max_completion_length: null",
        "pad_to_multiple_of: auto",
        "generation_kwargs: {stop_strings: ['1']}",
        "max_steps: -1",
    ],
)
def test_what_trl_can_mean_is_accepted_verbatim(tmp_path: Path, argument: str) -> None:
    assert load(tmp_path, f"trl: {{{argument}}}\n").trl


def test_lora_fields_are_checked_against_peft(tmp_path: Path) -> None:
    lora = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear", "init_lora_weights": "pissa_niter_16"}
    assert load(tmp_path, "", f"model.lora={lora}").model.lora == lora
    text = "model.lora={lora_alhpa: 32, r: 0, lora_dropout: '0.1', bias: alll, task_type: SEQ_CLS, peft_type: VERA}"
    assert dict(found(tmp_path, "", text)) == {
        "model.lora.lora_alhpa": "unknown-key",
        "model.lora.r": "greater-than-equal",
        "model.lora.lora_dropout": "float-type",
        **dict.fromkeys(("model.lora.bias", "model.lora.task_type", "model.lora.peft_type"), "unknown-word"),
    }


OVERRIDES = (
    "seed=3",
    "num_processes=8",
    "algorithm={advantage: {name: exchangeable, nothing: null}, prompts_per_rollout: 64, sequences_per_update: 256}",
    "trl={learning_rate: 1e-6, lr_scheduler_kwargs: {min_lr: 1e-7}}",
    "logging.report_to=[wandb, tensorboard]",
    'model={name_or_path: hub/m, assistant_prefix: "<think>\\n", lora: {r: 4}}',
    "data.test={generator: {name: kk, sizes: [3, 4]}, columns: {prompt: quiz, reference: {a: b.c}}}",
    "data.system_prompt='no'",
)


def test_the_resolved_configuration_starts_the_same_run(tmp_path: Path) -> None:
    config = load(tmp_path, "", *OVERRIDES)
    config.save_resolved(tmp_path / "resolved.yaml")
    assert load_config(tmp_path / "resolved.yaml") == config


@pytest.mark.parametrize("path", OF_EACH_FOLDER, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_published_configuration_loads_and_comes_back_from_its_resolved_form(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    config.save_resolved(tmp_path / "resolved.yaml")
    assert load_config(tmp_path / "resolved.yaml") == config


def test_everything_said_about_trl_arguments_is_about_arguments_that_trl_has() -> None:
    from peft import LoraConfig
    from trl import GRPOConfig

    names = {field.name for declared in (GRPOConfig, LoraConfig) for field in dataclasses.fields(declared)}
    assert {*IN_ANOTHER_SECTION, *CHOICES, *RANGE_OF} <= {*names, "task_type"}


def test_what_others_write_is_no_key_here_and_leads_to_one_that_is() -> None:
    from evenkeel.trainer.run.config.wording import fields_of

    for key in {*FOREIGN.values(), *IN_ANOTHER_SECTION.values()} - {"", "HF_TOKEN=…", "rewards.0.weight"}:
        *section, name = key.split(".")
        assert name in fields_of(tuple(section)), key
    assert not {*FOREIGN} & {*fields_of(("trl",)), *fields_of(("model", "lora"))}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("trl: {lr: 1e-6}\n", "trl.learning_rate"),
        ("learning_rate: 1e-6\n", "trl.learning_rate"),
        ("trl: {eval_steps: 5}\n", "evaluation.every_steps"),
        ("logging: {report_to: [TensorBoard]}\n", "tensorboard"),
        ("trl: {Learning-Rate: 1e-6}\n", "learning_rate"),
    ],
)
def test_a_name_of_other_spelling_or_of_before_leads_to_the_one_that_is_meant(
    tmp_path: Path, text: str, word: str
) -> None:
    (problem,) = problems(tmp_path, text)
    assert word in problem.instead


@pytest.mark.parametrize("name", sorted(CHOICES.keys() - {"task_type", "peft_type"}))
def test_the_known_words_are_those_that_trl_documents(name: str) -> None:
    from trl import GRPOConfig

    section = re.search(rf"\n {{8}}{name} \(.*?(?=\n {{8}}\w+ \(|\n\s+> |\Z)", GRPOConfig.__doc__ or "", re.DOTALL)
    assert section is not None
    assert set(re.findall(r'`"(\w+)"`', section.group())) == set(CHOICES[name])


@pytest.mark.parametrize(
    ("strategy", "key", "right", "wrong", "codes"),
    [
        (
            "algorithm.advantage=ibpo",
            "algorithm.revision",
            {"references": 2, "template": "{prompt} {answer}"},
            "{refrences: 2, references: 0, template: wrong, credit: fewest}",
            {
                "refrences": "unknown-key",
                "references": "greater-than-equal",
                "template": "template-without-prompt",
                "credit": "unknown-word",
            },
        ),
        (
            "algorithm.token_weight=rlsd",
            "algorithm.teacher",
            {"template": "{prompt} {reference}"},
            "{template: '{prompt}', references: 1}",
            {"references": "unknown-key", "template": "template-of-a-teacher"},
        ),
    ],
)
def test_options_of_revisions_and_teachers_are_checked_where_they_are_written(
    tmp_path: Path, strategy: str, key: str, right: dict[str, Any], wrong: str, codes: dict[str, str]
) -> None:
    assert getattr(load(tmp_path, "", strategy, f"{key}={right}").algorithm, key.rpartition(".")[2]) == right
    assert dict(found(tmp_path, "", f"{key}={wrong}")) == {f"{key}.{name}": code for name, code in codes.items()}


def test_the_words_are_those_of_transformers():
    assert {*get_args(TrackerName)} == {*INTEGRATION_TO_CALLBACK}


@pytest.mark.parametrize("mode", [None, "cloud"])
def test_a_tracker_keeps_from_the_network_unless_it_is_told_otherwise(
    mode: str | None, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    names = ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_EXPERIMENT_NAME", "SWANLAB_MODE", "SWANLAB_PROJECT")
    for variable in (*names, "WANDB_MODE", "WANDB_RUN_GROUP", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(variable, "")  # so that what the run sets is taken back
        monkeypatch.delenv(variable)
    if mode is not None:
        monkeypatch.setenv("SWANLAB_MODE", mode)
    prepare_logging(load(tmp_path, "logging: {report_to: [mlflow, swanlab]}\n"))
    assert [os.environ[name] for name in names] == ["true", "evenkeel", mode or "offline", "evenkeel"]
