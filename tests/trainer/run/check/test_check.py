"""What a check says of a whole run: the plan, all findings at once, JSON, the same before training; its rehearsal."""

import json
import os
import shutil
import socket
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from evenkeel.errors import Refusal
from evenkeel.trainer.command.check import main
from evenkeel.trainer.run import chat_template_trial
from evenkeel.trainer.run.check.check import checked
from evenkeel.trainer.run.check.model import model_settings, skeleton_of
from evenkeel.trainer.run.check.plan import plan_lines
from evenkeel.trainer.run.check.rehearsal import save_small_model
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.tokenizer import load_tokenizer, use_offline_mode
from tests.trainer.run.check.mistakes.workshop import ROWS, make_workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workshop(tmp_path_factory.mktemp("workshop"))


def run_of(workshop: Path, *overrides: str, processes: int | None = None, runs_code: bool = True):
    return checked(str(workshop / "run.yaml"), overrides, processes=processes, runs_code=runs_code)


def test_the_plan_is_the_arithmetic_of_the_file(workshop: Path):
    # 4 steps of 16 completions: 4 batches of 4 prompts × 4; 64 completions × 8 tokens = 512; 16 of 8 rows = 2 epochs
    plan = run_of(workshop, runs_code=False).plan  # nothing is rehearsed
    assert plan is not None
    assert (plan.optimizer_steps, plan.rollouts, plan.completions_per_rollout, plan.epochs) == (4, 4, 16, 2.0)
    assert (plan.completions, plan.tokens_generated, plan.passes) == (64, 512, 1)
    assert (plan.evaluations, plan.completions_per_evaluation) == (2, 4)
    assert "Rollout batches: 4 of 4 prompts × 4" in next(plan_lines(plan))


def test_lopti_trains_every_token_twice_in_as_many_steps(workshop: Path):
    # two passes a batch: 4 steps are 2 batches, 32 completions, 256 tokens generated
    plan = run_of(workshop, "algorithm.update_schedule=lopti", runs_code=False).plan
    assert plan is not None
    assert (plan.rollouts, plan.passes, plan.tokens_generated) == (2, 2, 256)
    assert "2 passes" in " ".join(plan_lines(plan))


def test_the_levels_of_a_curriculum_are_those_of_its_column(workshop: Path):
    lines = [{**row, "kind": "easy" if number < 6 else 7} for number, row in enumerate(ROWS)]  # four are rehearsed
    (workshop / "data" / "levels.jsonl").write_text("\n".join(map(json.dumps, lines)))
    known: dict[str, Any] = {}

    def said(sampler: str) -> str:
        overrides = ["data.train.path=data/levels.jsonl", f"algorithm.prompt_sampler={sampler}"]
        options = {"processes": None, "known": known, "runs_code": sampler != "uniform"}
        result = checked(str(workshop / "run.yaml"), overrides, **options)
        return "\n".join(map(str, result.errors))

    assert said("uniform") == ""
    assert said("{name: curriculum, column: kind, levels: [easy, 7], up_at: 0.5}") == ""
    for wrong in ("column: kind, levels: [easy, 7, 8]", "column: kin, levels: [easy, 7]"):
        refusal = said(f"{{name: curriculum, {wrong}, up_at: 0.5}}")
        assert "algorithm.prompt_sampler" in refusal
        assert "kin" in refusal


def test_a_batch_is_cut_on_other_numbers_of_processes(workshop: Path):
    reduced = "trl.accelerator_config={gradient_accumulation_kwargs: {sync_each_batch: true}}"
    result = run_of(workshop, "trl.per_device_train_batch_size=4", reduced, processes=2, runs_code=False)
    assert result.plan is not None
    assert (result.plan.processes, result.plan.completions_per_rollout) == (2, 16)
    assert {*result.memory} == {"ddp", "zero1", "zero2", "zero3", "fsdp2"}
    assert "gradients between micro-batches" not in {term.name for term in result.memory["fsdp2"].terms}


def test_what_is_wrong_in_four_parts_is_said_at_once(workshop: Path):
    overrides = [
        "data.train.path=data/twice.jsonl",
        "rewards.0.weight=0.0",
        "model.name_or_path=models/tinny",
        "algorithm.advantage=grop",
    ]
    result = run_of(workshop, *overrides)
    found = [(each.severity, each.code) for each in result.problems if each.severity != "note"]
    assert sorted(found) == [
        ("error", "no-model-folder"),
        ("error", "no-positive-weight"),
        ("error", "unknown-name"),
        ("warning", "repeated-prompts"),
    ]
    said = "\n".join(map(str, result.problems))
    for value in ("tiny?", "grpo?"):
        assert value in said


@pytest.mark.parametrize(
    ("old", "new", "line", "named"),
    [
        ("learning_rate: 1e-4", "learning_rate: 5", 13, "trl.learning_rate"),
        ("learning_rate: 1e-4", "optim_args: wide", 13, "trl.optim_args"),
        ("save_steps: 2", "save_only_model: true", 19, "trl.save_only_model"),
        ("algorithm: {", "algorithm: {advantage: nope, ", 7, "advantage 'nope'"),
        ("exact_match", "nope", 6, "verifier 'nope'"),
        ("held_out", "none", 2, "none.jsonl"),
    ],
)
def test_a_finding_names_where_it_is_written(workshop: Path, old: str, new: str, line: int, named: str):
    """The line of the key; of its section where the text names none; and the command line of an override."""
    file = workshop / "written.yaml"
    file.write_text((workshop / "run.yaml").read_text().replace(old, new))
    (finding,) = [each for each in checked(str(file), [], processes=None).problems if named in str(each)]
    assert str(finding).startswith(f"{file}, line {line}: ")


def test_nothing_is_said_of_the_file_for_a_variable_of_the_environment(workshop: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVENKEEL_OFF", "compakt")
    (said,) = run_of(workshop).errors
    assert str(said).startswith("EVENKEEL_OFF = compakt")


def test_json_holds_what_its_schema_names(workshop: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(workshop / "run.yaml"), "rewards.0.weight=0.0", "--json"]) == 2
    printed = capsys.readouterr().out
    record = json.loads(printed[printed.index("{") :])
    assert {*record} == {"config", "ok", "problems", "plan", "prompt_tokens", "memory_estimate"}
    assert record["ok"] is False
    assert {*record["problems"][0]} == {"severity", "key", "code", "text"}
    assert record["problems"][0]["code"] == "no-positive-weight"
    assert record["prompt_tokens"]["train"] == 6  # user a 1 a 2 assistant
    ddp = record["memory_estimate"]["ddp"]
    assert {*ddp["terms"][0]} == {"name", "bytes", "phase"}
    (weights,) = (term["bytes"] for term in ddp["terms"] if term["name"] == "weights")
    assert weights == 4 * AutoModelForCausalLM.from_pretrained(workshop / "models" / "tiny").num_parameters()


def test_without_code_of_its_own_the_rest_of_a_run_is_checked(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The module of a stranger ends the process that imports it."""
    (tmp_path / "strangers.py").write_text("import os\nos._exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = ["rewards.0.verifier=strangers:score", "algorithm.token_weight={name: 'strangers:weigh'}"]
    run = [str(workshop / "run.yaml"), *named, "data.train.path=data/twice.jsonl"]
    assert main([*run, "--no-code"]) == 0
    found = checked(run[0], run[1:], processes=None, runs_code=False).problems
    assert ("warning", "repeated-prompts", "data.train") in [(each.severity, each.code, each.key) for each in found]
    left_out = {each.key: str(each) for each in found if each.code == "code-not-run"}
    assert [*left_out] == ["rewards", "algorithm"]
    assert "strangers:score" in left_out["rewards"]
    assert "strangers:weigh" in left_out["algorithm"]


def test_many_unknown_keys_are_a_few_lines(workshop: Path):
    keys = "".join(f"  key_{number}: 1\n" for number in range(2000))
    (workshop / "many.yaml").write_text((workshop / "run.yaml").read_text().replace("trl:\n", f"trl:\n{keys}"))
    problems = checked(str(workshop / "many.yaml"), [], processes=None).problems
    assert len(problems) == 21
    assert "1,980 more" in str(problems[0])


LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("bomb", "limit", "given"),
    [
        (LOOPS, "cpu limit", "model.name_or_path={}"),
        ("{% set a = 'a' * 10**9 %}{{ (a ~ a ~ a)|length }}", "memory limit", "model.chat_template={}/{}"),
        ("{% if '2' in messages[0].content %}" + LOOPS + "{% endif %}", "cpu limit", "model.name_or_path={}"),
    ],
    ids=["time", "memory", "only for the rows"],
)
def test_a_template_without_end_is_ended_in_a_process_of_its_own(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str, limit: str, given: str
):
    pool = replace(chat_template_trial.POOL, cpu_seconds=0.5, memory_bytes=1 << 28)
    monkeypatch.setattr(chat_template_trial, "POOL", pool)
    shutil.copytree(workshop / "models" / "tiny", tmp_path / "model")
    template = tmp_path / "model" / "chat_template.jinja"
    template.write_text(bomb + template.read_text())
    errors = run_of(workshop, given.format(template.parent, template.name)).errors
    assert [limit in str(each) for each in errors] == [True]


def test_a_pipe_in_place_of_a_file_of_the_model_or_of_rows_is_refused(workshop: Path, tmp_path: Path):
    for name in ("tokenizer.json", "model.safetensors"):
        shutil.copytree(workshop / "models" / "tiny", tmp_path / name)
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
        errors = run_of(workshop, f"model.name_or_path={tmp_path / name}").errors
        assert [each.code for each in errors] == ["no-regular-file"]
    os.mkfifo(tmp_path / "rows.jsonl")
    (error,) = run_of(workshop, f"data.train.path={tmp_path / 'rows.jsonl'}").errors
    assert "pipe" in error.what


@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_a_wrong_id_is_answered_at_once_without_network(
    silent: bool, workshop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    import datasets
    from huggingface_hub import constants

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if silent:
            listening.listen()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        monkeypatch.setattr("evenkeel.trainer.run.data.sources.SECONDS_TO_ANSWER", 0.2)
        use_offline_mode.cache_clear()
        started = time.monotonic()
        with pytest.raises(Refusal, match="no/such-model"):
            load_tokenizer(load_config(workshop / "run.yaml", ["model.name_or_path=no/such-model"]))
        assert time.monotonic() - started < 5
    use_offline_mode.cache_clear()


@pytest.mark.skipif(find_spec("deepspeed") is None, reason="the extra deepspeed is not installed")
def test_the_shape_of_a_model_needs_no_weights_under_zero_3_either(tiny_model: Path, workshop: Path):
    from transformers.integrations.deepspeed import HfDeepSpeedConfig, is_deepspeed_zero3_enabled

    config = load_config(workshop / "run.yaml")
    settings = model_settings(config)
    plain = sum(parameter.numel() for parameter in skeleton_of(settings).parameters())
    alive = HfDeepSpeedConfig({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1})
    divided = skeleton_of(settings)
    assert sum(parameter.numel() for parameter in divided.parameters()) == plain > 0
    assert is_deepspeed_zero3_enabled()  # as before, for the model that is trained
    del alive
    assert not is_deepspeed_zero3_enabled()


LARGE = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 40, "vocab_size": 1000}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("llama", {"num_key_value_heads": 8, "intermediate_size": 16384}),
        ("qwen2", {"num_key_value_heads": 8, "intermediate_size": 16384, "use_sliding_window": True}),
        ("gemma3_text", {"num_key_value_heads": 8, "intermediate_size": 16384, "head_dim": 256}),
        ("qwen3_moe", {"num_key_value_heads": 8, "moe_intermediate_size": 768, "num_experts": 8}),
        ("gpt2", {}),
    ],
)
def test_a_large_model_becomes_a_small_one_of_its_kind(kind: str, more: dict[str, object], tmp_path: Path):
    settings = AutoConfig.for_model(kind, **LARGE, **more)
    settings.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]]
    if kind == "gpt2":
        settings.n_embd, settings.n_head = 64, 4  # it has no narrower form
    assert save_small_model(settings, tmp_path / "model") == tmp_path / "model"
    small = AutoConfig.from_pretrained(tmp_path / "model")
    assert (small.num_hidden_layers, small.vocab_size, small.model_type) == (2, 1000, kind)
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 150e6
    assert settings.num_hidden_layers == 40


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("model.lora={r: 4, target_modules: [q_prj]}", "model.lora.target_modules"),
        ("trl.lr_scheduler_type=cosine_with_min_lr", "trl.lr_scheduler_type"),
        ("trl.optim_args=wide", "trl.optim_args"),
        ("algorithm.advantage=gigpo", "algorithm.advantage: advantage 'gigpo' asks for the column 'turn_rewards'"),
    ],
)
def test_what_a_library_refuses_is_found_with_its_key_and_leaves_nothing_behind(
    workshop: Path, tmp_path: Path, override: str, key: str
):
    run = [str(workshop / "run.yaml"), override, f"output_dir={tmp_path / 'run'}"]
    (finding,) = checked(run[0], run[1:], processes=None).errors
    assert key in str(finding)
    assert str(finding).startswith("command line: ")
    assert not (tmp_path / "run").exists()
