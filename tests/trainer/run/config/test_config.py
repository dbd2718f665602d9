"""A YAML file becomes a RunConfig, or one error with everything that is wrong and what to write instead."""

import dataclasses
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.paths import ROOT
from trainer.run.config import ConfigError, RunConfig, load_config
from trainer.run.config.removed_names import REMOVED
from trainer.run.config.trl_arguments import CHOICES, ELSEWHERE, RANGE_OF, REASONS
from trainer.step.options import Speed

RUN_CONFIGS = sorted(
    path
    for path in (ROOT / "configs").rglob("*.yaml")
    if not {"accelerate", "evaluation", "sweeps"} & set(path.relative_to(ROOT).parts)
)
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


def refusal(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *overrides)
    return str(caught.value)


def test_reading_the_configuration_module_needs_neither_torch_nor_trl() -> None:
    code = "import sys, trainer.run.config, trainer.run.data; print({'torch', 'trl', 'transformers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_what_a_file_leaves_out_has_the_published_defaults(tmp_path: Path) -> None:
    config = load(tmp_path, name="kk-grpo.yaml")
    assert (config.name, config.output_dir, config.run_seed) == ("kk-grpo", "runs/kk-grpo", 42)
    assert (config.algorithm.advantage, config.algorithm.token_weight) == ("grpo", "uniform")
    assert (config.rewards[0].weight, config.rewards[0].label) == (1.0, "exact_match")
    assert (config.logging.report_to, config.logging.wandb_mode) == ("none", "offline")
    assert config.trl == {}


def test_micro_batches_are_planned_and_generation_is_trls_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    def speed(text: str = "") -> Speed:
        config = load(tmp_path, text)
        return config.speed.options(common_random_numbers=config.common_random_numbers)

    plain = Speed(microbatches="planned", skip_old_logps=None)
    assert speed() == plain
    assert plain.skips_old_logps
    given = speed("speed: {microbatches: trl, tokens_per_microbatch: 4096, verify_steps: 0}\n")
    assert given == Speed(tokens_per_microbatch=4096, verify_steps=0, skip_old_logps=None)
    assert not given.skips_old_logps
    assert speed("speed: {generation: compact}\n") == replace(plain, generation="compact")
    assert not speed("speed: {skip_old_logps: false}\n").skips_old_logps
    common = speed("speed: {generation: compact}\ncommon_random_numbers: true\n")
    assert common == replace(plain, generation="compact", common_random_numbers=True)
    own_path = refusal(tmp_path, "speed: {microbatches: trl, skip_old_logps: true}\n")
    assert "TRL's own path, bit for bit" in own_path
    assert "speed.microbatches" in refusal(tmp_path, "speed: {microbatches: packed}\n")


def test_a_run_keeps_its_own_name_and_directory(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(MINIMAL + "name: base\noutput_dir: runs/elsewhere\n")
    (tmp_path / "child.yaml").write_text("extends: base.yaml\n")
    child = load_config(tmp_path / "child.yaml")
    assert (child.name, child.output_dir) == ("child", "runs/child")


@pytest.mark.parametrize(("text", "seed"), [("seed: 0\n", 0), ("trl: {seed: 7}\n", 7), ("", 42)])
def test_the_seed_may_be_given_in_either_place(tmp_path: Path, text: str, seed: int) -> None:
    assert load(tmp_path, text).run_seed == seed


def test_paths_are_found_from_here_and_else_from_the_file_that_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, name in ((here, "both"), (there, "both"), (there, "policy")):
        (folder / name).mkdir(parents=True)
    monkeypatch.chdir(here)
    assert load(there, "", "model.name_or_path=policy").model.name_or_path == str(there / "policy")  # beside the file
    assert load(there, "", "model.name_or_path=none").model.name_or_path == "none"
    for name, place in (("both", here), ("policy", there), ("hub/model", None)):
        (there / "run.yaml").write_text(MINIMAL.replace("hub/model", name))
        found = load_config("../there/run.yaml").model.name_or_path
        assert Path(found).resolve() == (place / name).resolve() if place else found == name


def test_everything_wrong_is_said_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    message = refusal(tmp_path, "modle: 3\nevaluation: {batch_size: 0}\nlogging: {wandb_mode: onlin}\nseed: -1\n")
    found = re.findall(r"line (\d+): ([\w.]+):", message)
    assert found == [("6", "modle"), ("7", "evaluation.batch_size"), ("8", "logging.wandb_mode"), ("9", "seed")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modle: 3\n", "modle: there is no such key. Did you mean model?"),
        ("learning_rate: 1e-6\n", "argument of GRPOConfig. Write it under `trl:` as `learning_rate: …`."),
        ("zzz: 1\n", "zzz: there is no such key. The keys here are name, output_dir,"),
        ("evaluation:\n", "evaluation: is empty, and a mapping (key: value) is needed."),
        (
            "evaluation: {batch_size: '8'}\n",
            "is the text '8', and a whole number is needed. Write batch_size: 8, without",
        ),
        (
            "evaluation: {before: no}\n",
            "is the text 'no', and true or false is needed. Write before: true or before: false",
        ),
        ("evaluation: {before: 1}\n", "evaluation.before: is 1, and true or false is needed."),
        ("evaluation: {batch_size: 8.0}\n", "is 8.0, and a whole number is needed. Write batch_size: 8."),
        ("evaluation: {batch_size: true}\n", "evaluation.batch_size: is true, and a whole number is needed."),
        ("evaluation: {batch_size: 0}\n", "is 0, and a number that is 1 or more is needed."),
        ("name: 3\n", "name: is 3, and text is needed. Write it in quotes: '3'."),
        ("name: a/b\n", "is the text 'a/b', and one word without spaces and slashes is needed."),
        ("logging: {report_to: [wandbb]}\n", "logging.report_to.0: is the text 'wandbb'"),
        ("logging: {report_to: [wandbb]}\n", "Did you mean wandb or swanlab?"),
        ("logging: {report_to: null}\n", "logging.report_to: is empty, and one word is needed."),
        ("algorithm: {advantage: null}\n", "is None, and a part is chosen by its name."),
        ("algorithm: {advantage: {epsilon: 1}}\n", "has the keys epsilon but no `name`"),
        (
            "algorithm: {advantage: {name: x, deep: [.inf]}}\n",
            "algorithm.advantage.deep.0: is inf, and a finite number",
        ),
        ("algorithm: {prompts_per_rollout: 8}\n", "is given without sequences_per_update"),
        ("trl: {seed: 1}\nseed: 0\n", "trl.seed: is 1, while `seed:` at the top level is 0. Delete one of the two"),
    ],
)
def test_a_wrong_value_says_why_and_what_to_write(tmp_path: Path, text: str, words: str) -> None:
    message = refusal(tmp_path, text)
    assert f"{tmp_path}/run.yaml, line " in message
    assert words in message


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.dtype=bf16", "is the text 'bf16', which is none of the known words. Did you mean bfloat16?"),
        ("model.nmae_or_path=x", "Did you mean name_or_path?"),
        ("data.train={path: x, generator: y}", "data.train.generator: there are both a path and a generator."),
        ("data.train.path=null", "data.train.path: there is neither a path nor a generator."),
        (
            "data.test={generator: x, split: test}",
            "data.test.split: belongs to a path, not to a generator. Delete split.",
        ),
        ("data.test={my+set: {path: x}}", "a name of letters, digits, `_`, `-` and `.` is needed"),
        ("data.train.columns={reference: 3}", "data.train.columns.reference: is 3, and text or a list or a mapping"),
        ("data.train.columns={reference: {a: 3}}", "data.train.columns.reference.a: is 3, and text is needed."),
        ("data.train.columns={reference: []}", "data.train.columns.reference"),
        ("data.train.max_rows=1_000", "Write max_rows: 1000; YAML 1.2 has no underscores in numbers."),
        ("rewards=[]", "rewards: is [], and at least one entry is needed."),
        ("rewards.0.weight=.nan", "rewards.0.weight: is nan, and a finite number is needed."),
        ("rewards.0.wieght=1", "rewards.0.wieght: there is no such key. Did you mean weight?"),
        ("rewards=[{verifier: a}, {verifier: a}]", "rewards.1: 'a' already labels rewards.0. Give it another `name:`."),
        ("model=null", "model: is empty, and a mapping (key: value) is needed."),
    ],
)
def test_a_wrong_override_is_blamed_on_the_command_line(tmp_path: Path, override: str, words: str) -> None:
    message = refusal(tmp_path, "", override)
    assert message.startswith("command line: ")
    assert words in message


def test_a_missing_section_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("name: x\nmodel:\n  dtype: auto\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "run.yaml")
    assert f"{tmp_path}/run.yaml, line 2: model.name_or_path: is missing. Write `name_or_path: …`." in str(caught.value)
    assert {problem.path for problem in caught.value.problems} == {"model.name_or_path", "data", "rewards"}


def test_a_wrong_value_of_the_base_is_blamed_on_the_base(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(MINIMAL + "seed: -3\n")
    (tmp_path / "child.yaml").write_text("extends: base.yaml\n")
    with pytest.raises(ConfigError, match=r"^\S*base.yaml, line 6: seed: is -3"):
        load_config(tmp_path / "child.yaml")


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "learning_rate: '1e-6'",
            "is the text '1e-6', and a number is needed. Write learning_rate: 1e-6, without quotes.",
        ),
        ("learning_rate: 0", "is 0, and a number above 0 is needed. At 0 nothing is learned"),
        ("learning_rate: .inf", "is inf, and a finite number is needed."),
        ("learning_rate: .nan", "is nan, and a finite number is needed."),
        ("learning_rat: 1", "trl.learning_rat: there is no such key. Did you mean learning_rate?"),
        ("temperature: 0", "At 0 all completions of a group are the same"),
        (
            "num_generations: 1",
            "An advantage compares the completions of one prompt, which takes two. The default is 8.",
        ),
        ("num_generations: 4.0", "is 4.0, and a whole number is needed. Write num_generations: 4."),
        ("num_generations: null", "trl.num_generations: is empty, and a whole number is needed."),
        ("max_steps: 10.5", "is 10.5, and a whole number is needed."),
        ("max_steps: true", "is true, and a whole number is needed."),
        ("max_steps: 0", "0 steps would silently mean `num_train_epochs`"),
        ("beta: -0.1", "is -0.1, and a number that is 0 or more is needed."),
        ("epsilon: 0", "is 0, and a number above 0 is needed."),
        ("top_p: 1.5", "is 1.5, and a number that is 1 or less is needed."),
        ("per_device_train_batch_size: 0", "is 0, and a number that is 1 or more is needed."),
        ("num_iterations: 1_000", "Write num_iterations: 1000; YAML 1.2 has no underscores in numbers."),
        ("max_completion_length: None", "Write max_completion_length: null if you mean no value"),
        ("bf16: no", "is the text 'no', and true or false is needed."),
        ("loss_type: dpao", "Did you mean dapo? The words are grpo, dapo, dr_grpo, bnpo, cispo, sapo, luspo, vespo."),
        ("loss_type: true", "trl.loss_type: is true, which is none of the known words."),
        ("importance_sampling_level: sequnce", "Did you mean sequence?"),
        ("vllm_mode: collocate", "Did you mean colocate?"),
        ("lr_scheduler_type: cosin", "Did you mean cosine or"),
        ("optim: adamw", "Did you mean adamw_torch or"),
        ("lr_scheduler_kwargs: {min_lr: '1e-6'}", "trl.lr_scheduler_kwargs.min_lr: is the text '1e-6'"),
        ("lr_scheduler_kwargs: {deep: {min_lr: .inf}}", "trl.lr_scheduler_kwargs.deep.min_lr: is inf"),
        ("generation_kwargs: {a: [1, .nan]}", "trl.generation_kwargs.a.1: is nan"),
        ("output_dir: x", "trl.output_dir: belongs to another place in the file"),
        ("scale_rewards: none", "Choose an estimator: `algorithm: {advantage: grpo}`"),
        ("hub_token: secret", "Set the environment variable HF_TOKEN"),
        ("eval_steps: 10", "Write `evaluation: {every_steps: …}`."),
    ],
)
def test_trl_arguments_are_checked_against_trl(tmp_path: Path, argument: str, words: str) -> None:
    message = refusal(tmp_path, f"trl:\n  {argument}\n")
    assert f"{tmp_path}/run.yaml, line 7: trl." in message
    assert words in message


@pytest.mark.parametrize(
    "argument",
    [
        "learning_rate: 1e-6",
        "num_train_epochs: 3",
        "bf16: null",
        "lr_scheduler_type: cosine_with_min_lr",
        "lr_scheduler_kwargs: {min_lr: 1e-7}",
        "max_completion_length: null",
        "optim_target_modules: [q_proj]",
        "pad_to_multiple_of: auto",
        "generation_kwargs: {stop_strings: ['1']}",
        "chat_template_kwargs: {version: '2'}",
        "max_steps: -1",
    ],
)
def test_what_trl_can_mean_is_accepted_verbatim(tmp_path: Path, argument: str) -> None:
    assert load(tmp_path, f"trl: {{{argument}}}\n").trl


def test_sections_that_contradict_each_other_are_reported_with_everything_else(tmp_path: Path) -> None:
    message = refusal(tmp_path, "seed: 0\ntrl: {seed: 1, beta: -1}\n")
    assert "trl.beta: is -1" in message
    assert "trl.seed: is 1, while `seed:` at the top level is 0." in message


def test_a_cut_of_the_batch_is_said_in_one_place_only(tmp_path: Path) -> None:
    words = "algorithm: {prompts_per_rollout: 8, sequences_per_update: 16}\n"
    for name in ("generation_batch_size", "steps_per_generation", "gradient_accumulation_steps"):
        message = refusal(tmp_path, f"{words}trl: {{{name}: 8}}\n")
        assert f"trl.{name}: is 8, but algorithm.prompts_per_rollout already says how a batch is cut." in message


def test_lora_fields_are_checked_against_peft(tmp_path: Path) -> None:
    lora = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear", "init_lora_weights": "pissa_niter_16"}
    assert load(tmp_path, "", f"model.lora={lora}").model.lora == lora
    message = refusal(tmp_path, "", "model.lora={lora_alhpa: 32, r: 0, lora_dropout: '0.1', bias: alll}")
    assert "model.lora.lora_alhpa: there is no such key. Did you mean lora_alpha?" in message
    assert "model.lora.r: is 0, and a number that is 1 or more is needed." in message
    assert "model.lora.lora_dropout: is the text '0.1'" in message
    assert "model.lora.bias: is the text 'alll'" in message


def test_a_frozen_configuration_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(tmp_path).name = "other"  # type: ignore[misc]


FULL = """\
seed: 3
num_processes: 8
algorithm:
  advantage: {name: exchangeable, nothing: null}
  prompts_per_rollout: 64
  sequences_per_update: 256
trl:
  learning_rate: 1e-6
  lr_scheduler_kwargs: {min_lr: 1e-7}
logging: {report_to: [wandb, tensorboard]}
"""
OVERRIDES = (
    'model={name_or_path: hub/m, assistant_prefix: "<think>\\n", lora: {r: 4}}',
    "data.test={generator: {name: kk, sizes: [3, 4]}, columns: {prompt: quiz, reference: {a: b.c}}}",
    "data.system_prompt='no'",
)


def test_the_resolved_configuration_starts_the_same_run(tmp_path: Path) -> None:
    config = load(tmp_path, FULL, *OVERRIDES)
    config.save_resolved(tmp_path / "resolved.yaml")
    assert load_config(tmp_path / "resolved.yaml") == config


@pytest.mark.parametrize("path", RUN_CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_published_configuration_loads_and_comes_back_from_its_resolved_form(path: Path, tmp_path: Path) -> None:
    config = load_config(path)
    config.save_resolved(tmp_path / "resolved.yaml")
    assert load_config(tmp_path / "resolved.yaml") == config


def test_everything_said_about_trl_arguments_is_about_arguments_that_trl_has() -> None:
    from peft import LoraConfig
    from trl import GRPOConfig

    names = {field.name for declared in (GRPOConfig, LoraConfig) for field in dataclasses.fields(declared)}
    assert {*ELSEWHERE, *CHOICES, *REASONS, *RANGE_OF} <= names


def test_what_is_said_to_be_removed_is_no_argument_and_the_advice_names_what_is() -> None:
    from trl import GRPOConfig

    names = {field.name for field in dataclasses.fields(GRPOConfig)}
    assert not names & {*REMOVED}
    for advice in REMOVED.values():
        for written in re.findall(r"Write (\w+): ", advice):
            assert written in names, advice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("logging: {team: x}\n", "Did you mean entity?"),
        ("logging: {notes: x}\n", "Set the environment variable WANDB_NOTES."),
        ("logging: {report_to: [WandB]}\n", "Did you mean wandb"),
        ("logging: {report_to: [TensorBoard]}\n", "Did you mean tensorboard"),
        ("Logging: {report_to: none}\n", "Did you mean logging?"),
        ("trl: {Learning-Rate: 1e-6}\n", "Did you mean learning_rate?"),
        ("trl: {loss_type: 'Dr. GRPO'}\n", "Did you mean dr_grpo?"),
        ("evaluation_strategy: steps\n", "Write `evaluation: {every_steps: …}`."),
        ("logging: {report_to: [wandb], tags: pilot}\n", "tags: [pilot]"),
    ],
)
def test_a_name_of_other_spelling_or_of_before_leads_to_the_one_that_is_meant(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize("name", CHOICES)
def test_the_known_words_are_those_that_trl_documents(name: str) -> None:
    from trl import GRPOConfig

    section = re.search(rf"\n {{8}}{name} \(.*?(?=\n {{8}}\w+ \(|\n\s+> |\Z)", GRPOConfig.__doc__ or "", re.DOTALL)
    assert section is not None
    assert set(re.findall(r'`"(\w+)"`', section.group())) == set(CHOICES[name])


def test_revision_options_are_checked_where_they_are_written(tmp_path: Path) -> None:
    revision = {"references": 2, "template": "{prompt} {answer}"}
    config = load(tmp_path, "", "algorithm.advantage=ibpo", f"algorithm.revision={revision}")
    assert config.algorithm.revision == revision
    message = refusal(tmp_path, "", "algorithm.revision={refrences: 2, references: 0, template: wrong, credit: fewest}")
    assert "algorithm.revision.refrences: there is no such key. Did you mean references?" in message
    assert "algorithm.revision.references: is 0, and a number that is 1 or more is needed." in message
    assert "algorithm.revision.template: is 'wrong', which has no {prompt}" in message
    assert "algorithm.revision.credit: is the text 'fewest', which is none of the known words. Did you mean" in message
