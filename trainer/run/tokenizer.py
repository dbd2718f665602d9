"""The policy's tokenizer with its chat template, and faults of the policy's folder."""

from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal, closest
from evenkeel.trainer.run.chat_template_trial import rendering_fault
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.shipped import maker_of
from evenkeel.trainer.run.data.sources import use_offline_mode
from evenkeel.trainer.run.library_errors import in_words
from evenkeel.trainer.run.record.files import file_fault, files_fault

_MODEL = "model.name_or_path"
_MOST_BYTES = 1 << 20
"""Of a chat template; those of published models have up to 20,000."""


def load_tokenizer(config: RunConfig) -> tuple[Any, bool]:
    """The policy's tokenizer, its prompts ending in ``model.assistant_prefix``; and whether they end in ``<think>``.

    A checkpoint whose prompts end in that prefix already is left unchanged. ``model.chat_template`` is the tokenizer's
    from here on, and saved with it. Raw prompts need no template, and end as each row does: ``False``.

    Raises:
        Refusal: the model or the template cannot be opened, or there is no chat template, or one that fails or never
            ends; or raw prompts would be ended by a special token.
    """
    from transformers import AutoTokenizer

    name = config.model.name_or_path
    if files_fault(Path(name)) and (fault := folder_fault(name)):
        raise fault
    if not Path(name).exists():
        use_offline_mode()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            name,
            revision=config.model.revision,
            trust_remote_code=config.model.trust_remote_code,
            padding_side="left",
            truncation_side="left",
        )
    except Exception as error:  # tokenizers raises plain ones, transformers any
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = f"is {name!r}, whose tokenizer cannot be opened: {first}"
        raise folder_fault(name) or config_error("tokenizer", _MODEL, what) from error
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        what = f"The tokenizer of {name!r} reads no text: its files are missing."
        raise Refusal(f"{what} Copy tokenizer.json into that folder.", code="tokenizer")
    if tokenizer.eos_token is None:
        raise Refusal(f"The tokenizer of {name!r} has no eos_token. Save it with one.", code="tokenizer")
    if config.model.raw_prompts:
        special = tokenizer("1", return_special_tokens_mask=True)["special_tokens_mask"]
        if special[-1:] == [1]:
            what = f"The tokenizer of {name!r} ends each text with a special token."
            instead = "Save it with add_eos_token: false: a raw prompt goes on."
            raise Refusal(f"{what} {instead}", code="tokenizer")
        return tokenizer, False
    file = config.model.chat_template
    if file is not None:
        tokenizer.chat_template = _text_of(file)
    if not tokenizer.chat_template:
        what = f"The tokenizer of {name!r} has no chat template."
        instead = "Name a Jinja file by model.chat_template, or write raw: rows as they are."
        raise Refusal(f"{what} {instead}", code="tokenizer")
    if what := _template_fault(tokenizer):
        what = f"the chat template of {file or name!r} {what}"
        raise config_error("tokenizer", config.model.template_place, what)
    wanted = config.model.assistant_prefix
    if wanted and not _prompt(tokenizer).endswith(wanted):
        prefix = wanted.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        tokenizer.chat_template += "{% if add_generation_prompt %}{{ '" + prefix + "' }}{% endif %}"
    return tokenizer, _prompt(tokenizer).rstrip().endswith("<think>")


def _text_of(file: str) -> str:
    text, fault = "", file_fault(Path(file), _MOST_BYTES)
    try:
        text = "" if fault else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fault = f"cannot be read: {in_words(error).rstrip('.')}"
    if fault or not text.strip():
        what = f"is {file!r}, which {fault or 'is empty'}."
        instead = "Name a Jinja file, or write raw: rows as they are."
        raise config_error("tokenizer", "model.chat_template", what, instead)
    return text


def _template_fault(tokenizer: Any) -> str:
    """Why no prompt can be written by the tokenizer's template; empty if one can."""
    if limit := rendering_fault(tokenizer):
        return limit
    try:
        _prompt(tokenizer)
    except Exception as error:  # noqa: BLE001 a template is a program of its own
        return f"cannot write a question: {in_words(error)}"
    return ""


def _prompt(tokenizer: Any) -> str:
    question = [{"role": "user", "content": "?"}]
    return str(tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False))


def folder_fault(name: str) -> Refusal | None:
    """Why no policy can be loaded from ``name``; ``None`` if nothing is wrong, or a library explains it."""
    path = Path(name).expanduser()
    code, what, instead = "no-model-folder", "", "Check the path."
    if odd := files_fault(path):
        code, what, instead = "no-regular-file", f"cannot be loaded: {odd}.", "Copy or download the model again."
    elif not path.exists() and (command := maker_of(name)) is not None:
        what, instead = "does not ship, and is made in a checkout of Evenkeel.", f"There run: {command}"
    elif not path.is_dir() and path.parent.is_dir() and (len(path.parts) > 1 or name.startswith((".", "/", "~"))):
        what = "is not a folder."
        if near := closest(path.name, [each.name for each in path.parent.iterdir() if each.is_dir()]):
            instead = f"Did you mean {path.parent / near[0]}?"
    elif path.is_dir() and not (path / "config.json").is_file():
        made = sorted(path.glob("checkpoint-*"), key=lambda each: (len(each.name), each.name))
        adapter = (path / "adapter_config.json").is_file()
        code, what = "no-model", "has no config.json, so it is not a model."
        instead = f"Name one of its checkpoints, such as {made[-1]}." if made else "Name a model's folder."
        instead = "Merge the adapter into its model (evenkeel export), and name that folder." if adapter else instead
    return config_error(code, _MODEL, f"is {name!r}, which {what}", instead) if what else None
