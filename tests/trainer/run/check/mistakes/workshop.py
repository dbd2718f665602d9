"""A folder with one run that is right, and the models and data that mistakes name instead."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.tiny_model import CHAT_TEMPLATE, save_tiny_model

RIGHT = """\
model: {name_or_path: models/tiny}
data:
  train: {path: data/rows.jsonl}
  test: {path: data/held_out.jsonl}
rewards:
  - verifier: exact_match
algorithm: {prompts_per_rollout: 4, sequences_per_update: 16}
trl:
  per_device_train_batch_size: 16
  num_generations: 4
  max_completion_length: 8
  max_steps: 4
  learning_rate: 1e-4
  lr_scheduler_type: constant
  use_cpu: true
  bf16: false
  gradient_checkpointing: false
  logging_steps: 1
  save_steps: 2
evaluation: {batch_size: 4}
"""
LETTERS = "abcdefgh"
ROWS = [{"prompt": f"{letter} 1 {letter} 2", "reference": str(number)} for number, letter in enumerate(LETTERS)]
HELD_OUT = [{"prompt": f"{letter} 3", "reference": "3"} for letter in "abcd"]


def make_workshop(folder: Path) -> Path:
    """Write everything to ``folder``; the right run is its ``run.yaml``."""
    (folder / "run.yaml").write_text(RIGHT)
    _data(folder / "data")
    _models(folder / "models")
    return folder


def _changed(row: int, **columns: Any) -> list[dict[str, Any]]:
    return [{**each, **(columns if number == row else {})} for number, each in enumerate(ROWS)]


def _data(folder: Path) -> None:
    folder.mkdir()
    message = {"role": "user", "content": "a 1"}
    tables: dict[str, list[dict[str, Any]]] = {
        "rows": ROWS,
        "held_out": HELD_OUT,
        "twice": [*ROWS, ROWS[0]],
        "seen": ROWS[:4],
        "null_reference": _changed(3, reference=None),
        "system": [{**row, "prompt": [{"role": "system", "content": "b"}, message]} for row in ROWS],
        "answered": [
            {**row, "prompt": [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": "3"}]}
            for row in ROWS
        ],
        "rendered": _changed(0, prompt="<|im_start|>user a 1 assistant"),
        "begun": _changed(3, prompt="<eos> b 1"),
        "long": [{**row, "prompt": f"{row['prompt']} " * 100} for row in ROWS],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _models(folder: Path) -> None:
    folder.mkdir()
    tiny = save_tiny_model(folder / "tiny")
    for name in ("a_run", "adapter"):
        (folder / name).mkdir()
    (folder / "a_run" / "checkpoint-4").mkdir()
    (folder / "a_run" / "manifest.json").write_text("{}")
    (folder / "adapter" / "adapter_config.json").write_text('{"base_model_name_or_path": "models/tiny"}')
    of = {name: shutil.copytree(tiny, folder / name) for name in _BROKEN}
    (of["no_template"] / "chat_template.jinja").unlink()
    for path in of["no_tokenizer"].glob("*token*"):
        path.unlink()
    _edit(of["encoder"] / "config.json", model_type="bert", architectures=["BertModel"])
    (of["cut_off"] / "config.json").write_text('{"model_type": "qwen3", ')
    _edit(of["own_code"] / "config.json", model_type="mine", auto_map={"AutoConfig": "mine.Config"})
    _edit(of["no_eos"] / "tokenizer_config.json", eos_token=None)
    (of["other_eos"] / "chat_template.jinja").write_text(CHAT_TEMPLATE.replace("<eos>", "<pad>"))
    _edit(of["more_words"] / "config.json", vocab_size=20)
    _edit(of["huge"] / "config.json", hidden_size=2**14, intermediate_size=2**17)
    _claim_weights(of["huge"])
    _edit(of["layer_more"] / "config.json", num_hidden_layers=3, layer_types=["full_attention"] * 3)
    _edit(of["padding_beyond"] / "tokenizer_config.json", pad_token="<30>")
    (of["unread_template"] / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content")
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system messages here') }}{% endif %}"
    (of["refused_system"] / "chat_template.jinja").write_text(refuses + CHAT_TEMPLATE)
    words = json.loads((tiny / "tokenizer.json").read_text())
    words["model"]["vocab"]["user"] = 0.5
    (of["wrong_tokenizer"] / "tokenizer.json").write_text(json.dumps(words))
    for name, order in (("begins", [SPECIAL, TEXT]), ("ends", [TEXT, SPECIAL])):
        special = {"<eos>": {"id": "<eos>", "ids": [1], "tokens": ["<eos>"]}}
        added = {"type": "TemplateProcessing", "single": order, "pair": order, "special_tokens": special}
        _edit(of[name] / "tokenizer.json", post_processor=added)
    _edit(of["wider"] / "config.json", intermediate_size=80)
    _edit(of["quantized"] / "config.json", quantization_config={"quant_method": "gguf"})
    (of["gguf_alone"] / WEIGHTS).rename(of["gguf_alone"] / "model.gguf")
    weights = load_file(tiny / "model.safetensors")
    save_file({**weights, "v_head.weight": weights["model.norm.weight"].clone()}, of["value_head"] / WEIGHTS)
    with (of["cut_weights"] / WEIGHTS).open("rb+") as file:
        file.truncate(file.seek(0, 2) - 2000)
    turn = "{% if add_generation_prompt %}assistant {% endif %}"
    (of["no_turn"] / "chat_template.jinja").write_text(CHAT_TEMPLATE.replace(turn, ""))
    (of["no_cue_needed"] / "chat_template.jinja").write_text(NO_CUE)
    (of["no_system"] / "chat_template.jinja").write_text(
        CHAT_TEMPLATE.replace("{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}")
    )


def _claim_weights(folder: Path) -> None:
    """A file that is as long as the weights of the folder's config.json, and holds none of them."""
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        shapes = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).state_dict()
    header, end = {}, 0
    for name, tensor in shapes.items():
        if name != "lm_head.weight":  # tied
            header[name] = {"dtype": "F32", "shape": [*tensor.shape], "data_offsets": [end, end + 4 * tensor.numel()]}
            end += 4 * tensor.numel()
    text = json.dumps(header).encode()
    with (folder / WEIGHTS).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)  # sparse


_BROKEN = ("no_template", "no_tokenizer", "encoder", "cut_off", "own_code", "no_eos", "other_eos")
_BROKEN += ("more_words", "huge", "layer_more", "wider", "value_head")
_BROKEN += ("padding_beyond", "unread_template", "refused_system", "wrong_tokenizer")
_BROKEN += ("begins", "ends", "cut_weights", "no_turn", "no_cue_needed", "no_system", "quantized", "gguf_alone")
WEIGHTS = "model.safetensors"
SPECIAL, TEXT = {"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
NO_CUE = (
    "{% for m in messages %}{{ m['content'] + '<eos>' if m['role'] == 'assistant' else '[' + m['content'] + '] ' }}"
    "{% endfor %}"
)


def _edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
