"""Edits of what a run is made of: its file, its environment, a launcher's file, its model's folder, its rows.

Everything is drawn from one seed and the number of the edit: the same pair makes the same edit.
"""

import copy
import inspect
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from ruamel.yaml import YAML
from safetensors.torch import load_file, save_file

from evenkeel.trainer.algorithms.registry import KINDS, built_in
from evenkeel.trainer.algorithms.revisions import RevisionOptions
from evenkeel.trainer.algorithms.teachers import TeacherOptions
from evenkeel.trainer.run import config as made
from evenkeel.trainer.run.check.check import _lacking
from evenkeel.trainer.run.config import trl_arguments
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.config.schema import BATCH_WORDS
from evenkeel.trainer.run.config.section import expanded
from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.run.experiment import Experiment
from tests.paths import ROOT
from tests.trainer.run.check.mistakes.workshop import HELD_OUT, RIGHT, ROWS

_TYPED = " |0|1e-4|true|none|auto|x|a b|é|∞|a\0b|../..|/|/proc|~|$HOME|{{ x|{x}|%s|a=b|--help|2026-01-01"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 1000, 10**12, 2**70, 0.5, 1.5, -0.1, 1e-300, 1e308),
    *(float("inf"), float("nan"), "", "a" * 5000, [], [1], [[]], ["x"], [None], {}, {"a": 1}, {"a": {}}, {"": None}),
    *_TYPED.split("|"),
    [{"a": 1}],
)
"""What stands in the place of another value."""
TEXTS = tuple(value for value in VALUES if isinstance(value, str) and "\0" not in value)
RECIPES = ("math/tiny_cpu", "mixed/tiny_cpu", "code/tiny_cpu", "knights_knaves/tiny_cpu", "countdown/ibpo_tiny_cpu")
SMALL = {
    "max_steps": 1,
    "save_steps": 1,
    "num_generations": 2,
    "per_device_train_batch_size": 8,
    "max_completion_length": 4,
    "lr_scheduler_type": "constant",
}
LAUNCHERS = ("cpu_two_processes", "ddp", "one_gpu", "zero2", "zero3", "fsdp2")
VARIABLES = """
WANDB_MODE WANDB_API_KEY WANDB_PROJECT WANDB_RUN_ID WANDB_ENTITY WANDB_DIR WANDB_TAGS WANDB_RESUME WANDB_NAME
WANDB_BASE_URL WANDB_NOTES WANDB_RUN_GROUP WANDB_LOG_MODEL WANDB_WATCH WANDB_CONFIG_DIR WANDB_CACHE_DIR
ACCELERATE_TORCH_DEVICE ACCELERATE_DYNAMO_BACKEND ACCELERATE_DYNAMO_MODE ACCELERATE_MIXED_PRECISION
ACCELERATE_USE_CPU ACCELERATE_USE_DEEPSPEED ACCELERATE_USE_FSDP ACCELERATE_DEEPSPEED_CONFIG_FILE FSDP_VERSION
ACCELERATE_GRADIENT_ACCUMULATION_STEPS ACCELERATE_DEEPSPEED_ZERO_STAGE ACCELERATE_DYNAMO_USE_DYNAMIC
ACCELERATE_ALLOW_CP_STANDALONE ACCELERATE_DEBUG_MODE ACCELERATE_LOG_LEVEL ACCELERATE_CPU_AFFINITY
FSDP_SHARDING_STRATEGY FSDP_AUTO_WRAP_POLICY CUDA_VISIBLE_DEVICES WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE
MASTER_ADDR MASTER_PORT OMP_NUM_THREADS HF_HOME HF_TOKEN HF_HUB_OFFLINE HF_DATASETS_CACHE TMPDIR HOME
TENSORBOARD_LOGGING_DIR TRANSFORMERS_VERBOSITY TOKENIZERS_PARALLELISM PYTORCH_CUDA_ALLOC_CONF DS_ACCELERATOR
COLUMNS LANG TERM TRACKIO_PROJECT SLURM_JOB_ID SLURM_NTASKS PMI_SIZE XDG_CACHE_HOME
""".split()  # noqa: SIM905 — a list of them would be a page


@dataclass
class Case:
    """One edit: what was made of it, and what it is, in words."""

    what: str
    overrides: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    launcher: Path | None = None


def base(draw: random.Random, folder: Path) -> dict[str, Any]:
    """A run that is right: that of the mistakes' workshop, or a shipped recipe for a CPU with the tiny model."""
    if draw.random() < 0.6:
        run = YAML(typ="safe").load(RIGHT)
    else:
        recipe = draw.choice(RECIPES)
        run = layered(ROOT / "configs" / f"{recipe}.yaml", []).plain()
        for above, key in [*_places(run["data"])]:
            if key == "generator":
                above[key] |= {"train": 16, "test": 4}
        run["evaluation"] = {"batch_size": 4}
    run["trl"] |= SMALL
    run["algorithm"] |= {"prompts_per_rollout": 4, "sequences_per_update": 8}
    run["model"] = {"name_or_path": str(folder / "model")}
    run["output_dir"] = str(folder / "out")
    for part in ("train", "test"):
        if isinstance(run["data"].get(part), dict) and "path" in run["data"][part]:
            run["data"][part] = {"path": str(folder / f"{part}.jsonl")}
    return run


def make_case(folder: Path, model: Path, seed: int, number: int, *, of_file: bool = False) -> Case:
    """Write case ``number`` of ``seed`` to ``folder``; with ``of_file`` only the run file is edited, or overridden."""
    draw = random.Random(f"{seed}/{number}")
    shutil.copytree(model, folder / "model")
    for part, rows in (("train", ROWS), ("test", HELD_OUT)):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = base(draw, folder)
    (folder / "run.yaml").write_text(write(run))
    edit = draw.choice(EDITS[:6] if of_file else EDITS)
    case = edit(draw, folder, run)
    case.what = f"{edit.__name__.removeprefix('_of_')}: {case.what}"
    (folder / "what").write_text(case.what)
    return case


def edited(draw: random.Random, tree: Any) -> str:
    """Delete, exchange, copy or change one place of ``tree``; what was done."""
    places = [*_places(tree)]
    if not places:
        return "nothing"
    above, key = draw.choice(places)
    what = draw.choice(("delete", "value", "value", "value", "swap", "copy", "scale"))
    if what == "delete":
        del above[key]
    elif what == "swap":
        other, name = draw.choice(places)
        if other is above or isinstance(other[name], dict | list) or isinstance(above[key], dict | list):
            above[key] = draw.choice(VALUES)
        else:
            above[key], other[name] = other[name], above[key]
    elif what == "copy" and isinstance(above, dict):
        above[f"{key}{draw.choice(('s', '_2', ' '))}"] = copy.deepcopy(above[key])
    elif what == "scale" and isinstance(above[key], int | float):
        above[key] = above[key] * draw.choice((-1, 2, 3, 0.5, 1000, 10**9))
    elif what == "scale" and isinstance(above[key], str):
        above[key] = mangled(draw, above[key])
    else:
        above[key] = draw.choice(VALUES)
    return f"{what} {key!r} → {str(above[key] if key in _keys(above) else 'gone')[:60]!r}"


def mangled(draw: random.Random, text: str) -> str:
    """``text`` with a piece deleted, doubled or put in."""
    at, until = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    until = min(until, at + draw.choice((1, 3, 40)))
    piece = draw.choice(
        (text[at:until] * 2, "", *"{}[]:#&*!|>'\"%@`\t\n\0\\-", "é", "<<", "{{", "{%", "}}", "\r", "\x1b")
    )
    return text[:at] + piece + text[until:]


def _of_file(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    said = [edited(draw, run) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    (folder / "run.yaml").write_text(write(run))
    return Case("; ".join(said))


def _of_settings(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    """One of all the settings that there are, with a value that fits its kind or does not."""
    key, values = draw.choice(settings())
    value = draw.choice(values) if values and draw.random() < 0.7 else draw.choice(VALUES)
    *above, last = key.split(".")
    place = run
    for name in above:
        place = place.setdefault(name, {})
    place[last] = value
    (folder / "run.yaml").write_text(write(run))
    return Case(f"{key} = {str(value)[:80]!r}")


def _of_text(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    lines = write(run).splitlines(keepends=True)
    what = draw.choice(("mangle", "line twice", "line gone", "lines swapped", "overrides"))
    at = draw.randrange(len(lines))
    if what == "overrides":
        key = draw.choice(settings())[0]
        given = f"{key}{draw.choice(('=', '=', '=', ':', '', '=='))}{draw.choice(TEXTS)}"
        return Case(given, overrides=[given])
    if what == "line twice":
        lines.insert(at, lines[at])
    elif what == "line gone":
        del lines[at]
    elif what == "lines swapped":
        other = draw.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    text = mangled(draw, "".join(lines)) if what == "mangle" else "".join(lines)
    (folder / "run.yaml").write_text(text)
    return Case(what)


def _of_environment(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    given = {name: draw.choice(TEXTS) for name in draw.sample(VARIABLES, draw.choice((1, 1, 2)))}
    if draw.random() < 0.5:
        run.setdefault("logging", {})["report_to"] = draw.choice((["wandb"], ["tensorboard"], ["wandb", "tensorboard"]))
        (folder / "run.yaml").write_text(write(run))
    return Case(str({name: value[:40] for name, value in given.items()}), environment=given)


def _of_launcher(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    file, name = folder / "launcher.yaml", draw.choice(LAUNCHERS)
    settings = YAML(typ="safe").load((ROOT / "configs" / "accelerate" / f"{name}.yaml").read_text())
    settings["num_processes"] = 1
    if draw.random() < 0.2:
        file.write_text(mangled(draw, write(settings)))
        return Case(f"{name}: mangled", launcher=file)
    said = [edited(draw, settings) for _ in range(draw.choice((1, 1, 2)))]
    file.write_text(write(settings))
    return Case(f"{name}: {'; '.join(said)}", launcher=file)


def _of_model(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    model = folder / "model"
    file = draw.choice(sorted(model.iterdir()))
    what = draw.choice(("missing", "empty", "half", "text", "edit", "edit", "edit", "edit", "edit"))
    if what == "missing":
        file.unlink()
    elif what in ("empty", "half"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 if what == "half" else 0])
    elif file.suffix == ".safetensors":
        weights = load_file(file)
        name = draw.choice(sorted(weights))
        what = draw.choice(("nan", "inf", "shape", "gone", "name", "int", "half", "big"))
        other: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "nan": lambda tensor: torch.full_like(tensor, torch.nan),
            "inf": lambda tensor: torch.full_like(tensor, torch.inf),
            "big": lambda tensor: tensor * 1e30,
            "shape": lambda tensor: tensor[..., :-1].clone(),
            "int": lambda tensor: tensor.to(torch.int32),
            "half": lambda tensor: tensor.to(torch.float16),
        }
        changed = weights.pop(name)
        if what == "name":
            weights[f"{name}.x"] = changed
        elif what != "gone":
            weights[name] = other[what](changed).contiguous()
        save_file(weights, file)
        what = f"{what} {name}"
    elif what == "text" or file.suffix != ".json":
        text = file.read_text()
        file.write_text(draw.choice((mangled(draw, text), draw.choice(TEXTS), _template(draw))))
    else:
        tree = json.loads(file.read_text())
        what = edited(draw, tree)
        file.write_text(json.dumps(tree))
    return Case(f"{file.name}: {what}")


def _template(draw: random.Random) -> str:
    inside = draw.choice(("raise_exception('no')", "x.y.z", "1 / 0", "messages[9]", "messages | join", "range(10**9)"))
    return "{% for m in messages %}{{ m['content'] }}{% endfor %}{{ " + inside + " }}"


def _of_rows(draw: random.Random, folder: Path, run: dict[str, Any]) -> Case:
    run["data"] = {part: {"path": str(folder / f"{part}.jsonl")} for part in ("train", "test")}
    verifiers = ("exact_match", "math_answer", "countdown", "code_tests", "multiple_choice", "knights_knaves")
    run["rewards"] = [{"verifier": draw.choice(verifiers)}]
    (folder / "run.yaml").write_text(write(run))
    part = draw.choice(("train", "train", "test"))
    rows: list[Any] = [copy.deepcopy(row) for row in (ROWS if part == "train" else HELD_OUT)]
    form = draw.choice(("plain", "messages", "sharegpt", "reference"))
    for row in rows if draw.random() < 0.7 else rows[:1]:
        if form == "messages":
            row["prompt"] = [{"role": "system", "content": "b"}, {"role": "user", "content": row["prompt"]}]
        elif form == "sharegpt":
            row["conversations"] = [{"from": "human", "value": row.pop("prompt")}, {"from": "gpt", "value": "1"}]
        elif form == "reference":
            row["reference"] = {"numbers": [1, 2], "target": 3, "tests": ["assert 1"], "solution": [True]}
    said = [edited(draw, rows) for _ in range(draw.choice((1, 2, 4)))]
    lines = [json.dumps(row) for row in rows]
    if draw.random() < 0.2:
        lines[-1] = mangled(draw, lines[-1])
        said.append("mangled")
    (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    return Case(f"{part}, {form}: {'; '.join(said)}")


EDITS: tuple[Callable[[random.Random, Path, dict[str, Any]], Case], ...] = (
    *(_of_file, _of_file, _of_settings, _of_settings, _of_settings, _of_text),
    *(_of_environment, _of_launcher, _of_model, _of_model, _of_rows),
)
_WORDS: dict[str, tuple[Any, ...]] = {
    "optim_args": ("x", "a=b", "betas=1", "rank=2,scale=x", "lr=1", "weight_decay=x", "momentum=0.9", "fused=maybe"),
    "lr_scheduler_kwargs": ({"a": 1}, {"num_cycles": "x"}, {"min_lr": -1}, {"min_lr_rate": 2}, {"num_decay_steps": 1}),
    "fsdp": ("full_shard", "auto_wrap", "x", ["full_shard"], True),
    "fsdp_config": ({"a": 1}, {"min_num_params": 1}, "none.json", {"transformer_layer_cls_to_wrap": "X"}),
    "deepspeed": ("none.json", {"a": 1}, {"zero_optimization": {"stage": 2}}, "auto"),
    "accelerator_config": ({"a": 1}, {"split_batches": True}, {"dispatch_batches": True}, "none.json"),
    "generation_kwargs": ({"a": 1}, {"num_beams": 2}, {"num_return_sequences": 2}, {"do_sample": False}),
    "chat_template_kwargs": ({"a": 1}, {"enable_thinking": False}, {"tools": 1}, {"tokenize": False}),
    "torch_compile_backend": ("x", "inductor", "eager"),
    "gradient_checkpointing_kwargs": ({"a": 1}, {"use_reentrant": True}),
    "report_to": (["wandb"], ["tensorboard"], ["x"]),
    "target_modules": (["q_proj"], "all-linear", ["x"], "(", ".*"),
    **dict.fromkeys(("kasa_config", "loftq_config", "eva_config", "velora_config"), ({"a": 1},)),
    "dtype": ("float16", "bfloat16", "float8", "auto"),
    "attn_implementation": ("eager", "sdpa", "flash_attention_2", "x", "flex_attention"),
    "resume_from_checkpoint": ("x",),
}


_READ_AS: dict[str, Any] = {
    "trl.include_num_input_tokens_seen": ("no", "all"),
    "trl.fsdp": (True,),
    "trl.debug": ([],),  # of blanks
    "trl.dataloader_pin_memory": (False,),  # of a CPU
}
"""Argument → what transformers makes of other values."""


@cache
def settings() -> list[tuple[str, tuple[Any, ...]]]:
    """Dotted path of every setting, with values of its own kind."""
    kinds: dict[str, Any] = {"trl": trl_arguments.grpo_arguments(), "model.lora": trl_arguments.lora_arguments()}
    kinds |= {"algorithm.revision": RevisionOptions, "algorithm.teacher": TeacherOptions}
    sections: dict[str, Any] = {name: field.annotation for name, field in made.RunConfig.model_fields.items()}
    kinds |= {name: kind for name, kind in sections.items() if name != "trl" and hasattr(kind, "model_fields")}
    known: list[tuple[str, tuple[Any, ...]]] = []
    for name, kind in kinds.items():
        for key, each in kind.model_fields.items():
            words, literal = _WORDS.get(key, ()), str(each.annotation)
            if "Literal[" in literal:
                inside = literal.split("Literal[", 1)[1].split("]", 1)[0]
                words = (*words, *(word.strip(" '\"") for word in inside.split(",")))
            elif "bool" in literal:
                words = (*words, True, False)
            elif "int" in literal or "float" in literal:
                words = (*words, 1, 2, 4, 0.5)
            known.append((f"{name}.{key}", words))
    parts = [(f"algorithm.{kind}", tuple(_parts(kind))) for kind in KINDS]
    return known + parts + [(name, ()) for name in sections]


def _parts(kind: str) -> Iterator[Any]:
    """Each strategy that ships by its name, and with each of its numbers and switches at another value."""
    for name, part in built_in(kind).items():
        yield name
        for option in inspect.signature(part).parameters.values():
            if isinstance(value := option.default, int | float):
                other = (not value) if isinstance(value, bool) else value / 2 if isinstance(value, float) else value + 1
                yield {"name": name, option.name: other}


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in _keys(tree):
        yield tree, key
        yield from _places(tree[key])


def _keys(tree: Any) -> list[Any]:
    return [*tree] if isinstance(tree, dict) else [*range(min(len(tree), 40))] if isinstance(tree, list) else []


def dropped(file: Path, overrides: list[str], report: str) -> list[str]:
    """Each setting of an accepted run whose value is not held by what is made of it, and that ``report`` does not name.

    A setting is held by TRL's arguments or peft's, or by the part that it builds, or else by the resolved file.
    """
    config = made.load_config(file, overrides)
    experiment = Experiment(config, file.parent, config.num_processes or 1)
    args = made.planned_config(config, experiment.processes, lacking := _lacking(config))
    held, plan, speed = config.model_dump(), experiment.plan, vars(config.speed_options)
    held |= {"seed": args.seed, "output_dir": args.output_dir, "common_random_numbers": speed["common_random_numbers"]}
    held["trl"] = {**vars(args), **{key: config.trl.get(key) for key in lacking}}
    held["model"] |= {"trust_remote_code": args.trust_remote_code, **(args.model_init_kwargs or {})}
    held["model"] |= {"lora": made.lora_config(config), "quantization": made.quantization_config(config)}
    for name, part in vars(experiment.strategies).items():
        held["algorithm"][name] = _built(held["algorithm"].get(name), part)
    held["algorithm"] |= {name: getattr(plan, name) for name in BATCH_WORDS}
    held["speed"] = speed
    held["evaluation"] |= {"every_steps": args.eval_steps, "batch_size": args.per_device_eval_batch_size}
    held["logging"]["report_to"] = args.report_to
    given = zip(held["rewards"], experiment.verifiers.values(), args.reward_weights, strict=True)
    for reward, verifier, weight in given:
        reward |= {"verifier": _built(reward["verifier"], verifier), "weight": weight}
    written = layered(file, overrides).plain()
    return [key for key in _unheld(written, held, file.parent, "") if key not in report]


def _built(spec: Any, part: Any) -> Any:
    """What a part was given: its name, with the options that are bound to its function or are attributes of it."""
    if part is None or not isinstance(spec, dict):
        return spec
    if "name" not in spec:
        return part
    function = getattr(part, "function", part)
    bound = {**getattr(function, "keywords", {}), **getattr(function, "__dict__", {}), **getattr(part, "options", {})}
    return {"name": spec["name"], **bound}


def _unheld(written: Any, held: Any, folder: Path, path: str) -> Iterator[str]:
    if isinstance(written, dict):
        inside = held if isinstance(held, dict) else getattr(held, "__dict__", {})
        for key, value in written.items():
            yield from _unheld(value, inside.get(key), folder, f"{path}.{key}".lstrip("."))
    elif isinstance(written, list) and isinstance(held, list) and len(written) == len(held):
        for place, (value, other) in enumerate(zip(written, held, strict=True)):
            yield from _unheld(value, other, folder, f"{path}.{place}")
    elif (isinstance(held, set) and {*written} == held) or held in _READ_AS.get(path, ()):
        return
    elif written is not None and written != getattr(held, "value", held):
        text = str(written)
        if not isinstance(held, str) or held not in (expanded(text), str(made.local_path(text, folder, Path()))):
            yield path
