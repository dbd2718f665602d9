"""The model's folder, configuration and shape, without its weights; and what of them a run cannot train."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal, closest
from evenkeel.trainer.run.check.context import CheckContext, Finding, error, note, warning
from evenkeel.trainer.run.check.memory import ModelSize
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.shipped import maker_of

_MOST_UNUSED = 0.01
"""Share of a tokenizer's tokens that may have no embedding."""
_NO_HEAD = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "LMHead")


def model_settings(config: RunConfig) -> Any:
    """The configuration of ``model.name_or_path``; of a model that also sees, all of it.

    Raises:
        Refusal: it cannot be read, needs code of its own, or writes no text.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as WRITERS

    from evenkeel.trainer.run.data.sources import use_offline_mode

    model = config.model
    if not Path(model.name_or_path).exists():
        use_offline_mode()
    try:
        settings = AutoConfig.from_pretrained(
            model.name_or_path, revision=model.revision, trust_remote_code=model.trust_remote_code
        )
    except Exception as fault:  # of a config.json each class of models refuses values in its own way
        own = "trust_remote_code" in str(fault) or "custom code" in str(fault)
        instead = "Read that code, then write trust_remote_code: true." if own else "Name another model or folder."
        first = (str(fault).strip() or type(fault).__name__).splitlines()[0].rstrip(".")
        what = f"model.name_or_path = {model.name_or_path!r} cannot be read: {first}. {instead}"
        raise Refusal(what, code="model-needs-code" if own else "unreadable-model") from fault
    if not model.trust_remote_code and getattr(settings, "auto_map", None) and not settings.model_type:
        raise Refusal(
            f"model.name_or_path = {model.name_or_path!r} needs code of its own. Read it, then write "
            "trust_remote_code: true.",
            code="model-needs-code",
        )
    names = settings.architectures or []
    own = "AutoModelForCausalLM" in (getattr(settings, "auto_map", None) or {})
    if names and not own and not any(name.endswith(_NO_HEAD) or name in WRITERS.values() for name in names):
        raise Refusal(
            f"model.name_or_path = {model.name_or_path!r} is a {names[0]}, not a causal language model: it writes no "
            "text. Name a model for text generation.",
            code="not-a-language-model",
        )
    return settings


def skeleton_of(config: RunConfig, settings: Any) -> Any:
    """The model on the meta device; ``None`` where its class needs code of its own."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    kinds = (AutoModelForCausalLM, AutoModelForImageTextToText)
    known = next((kind for kind in kinds if type(settings) in kind._model_mapping), None)
    if known is None:
        return None
    with torch.device("meta"), without_zero3():
        return known.from_config(settings)


@contextmanager
def without_zero3() -> Iterator[None]:
    """Without ZeRO-3, which divides a model over the ranks as it is made, and cannot divide one without weights."""
    from transformers.integrations import deepspeed

    reference = deepspeed._hf_deepspeed_config_weak_ref
    deepspeed.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        deepspeed._hf_deepspeed_config_weak_ref = reference


def size_of(skeleton: Any, settings: Any, trained: int | None = None) -> ModelSize:
    """The shape of a model; ``trained``: parameters of the adapter that alone is trained."""
    text = settings.get_text_config()
    parameters = sum(parameter.numel() for parameter in skeleton.parameters())
    heads = text.num_attention_heads
    return ModelSize(
        parameters=parameters + (trained or 0),
        trained=parameters if trained is None else trained,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        intermediate=getattr(text, "intermediate_size", None) or 4 * text.hidden_size,
        vocabulary=text.vocab_size,
        heads=heads,
        key_value_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
        head_norms=any(name.endswith("q_norm") for name, _ in skeleton.named_modules()),
    )


def model_findings(context: CheckContext) -> Iterator[Finding]:
    """Tokenizer against model, precision, attention, end of text, pre-filled thought."""
    model = context.config.model
    if model.dtype == "float16" and context.argument("fp16"):
        yield error(
            "model",
            "float16-with-fp16",
            "model.dtype: float16 with trl.fp16: true: the gradients would be 16 bits too, and the GradScaler "
            "refuses to unscale them. Write dtype: float32 for the weights, or take bf16.",
        )
    prefix = model.assistant_prefix
    if prefix is not None and prefix.strip() in ("think", "thought", "reasoning"):
        yield note(
            "model", "prefix-without-thought", f"model.assistant_prefix = {prefix!r} opens no thought; write '<think>'."
        )
    if context.tokenizer is not None:
        yield from _tokenizer(context)


def _tokenizer(context: CheckContext) -> Iterator[Finding]:
    tokenizer, name = context.tokenizer, context.config.model.name_or_path
    if tokenizer.eos_token_id is None:
        yield error(
            "model",
            "no-eos-token",
            f"The tokenizer of {name!r} has no end-of-text token, so no completion would end before "
            "trl.max_completion_length. Save it with an eos_token.",
        )
    elif (ending := _turn_ending(tokenizer)) is not None and tokenizer.eos_token not in ending:
        yield warning(
            "model",
            "turn-ends-without-eos",
            f"The chat template of {name!r} ends an assistant's turn with {ending!r}, and the end-of-text token is "
            f"{tokenizer.eos_token!r}: the policy has learned to end with one that does not end its completions. Save "
            "the tokenizer with that eos_token.",
        )
    words = getattr(context.settings, "vocab_size", None)
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    if isinstance(words, int) and isinstance(padding, int) and padding >= words:
        yield error(
            "model",
            "padding-beyond-embeddings",
            f"The tokenizer of {name!r} pads with token {padding} ({tokenizer.convert_ids_to_tokens(padding)!r}), and "
            f"the embeddings have {words} rows: no batch could be padded. Save the tokenizer with a pad_token of the "
            "model's own.",
        )
    largest = max(tokenizer.get_vocab().values(), default=0)
    if not isinstance(words, int):
        return
    beyond = sum(number >= words for number in tokenizer.get_vocab().values())
    if beyond:  # a few that no text is written in, as for images, are usual
        grave = error if beyond > _MOST_UNUSED * len(tokenizer) or (tokenizer.eos_token_id or 0) >= words else note
        yield grave(
            "model",
            "tokens-beyond-embeddings",
            f"The tokenizer of {name!r} has more tokens than the model: its largest id is {largest}, and the "
            f"embeddings have {words} rows. Save the tokenizer of this model, or resize the embeddings.",
        )


def _turn_ending(tokenizer: Any) -> str | None:
    """What the chat template writes after an assistant's message; ``None`` where it is not known."""
    mark = "7"
    turns = [{"role": "user", "content": "1"}, {"role": "assistant", "content": mark}]
    try:
        written = str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # noqa: BLE001 — a chat template is a program of its own
        return None
    before, found, ending = written.rpartition(mark)
    return ending.strip() if found and before and ending.strip() else None


_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")


def folder_fault(name: str) -> Refusal | None:
    """Why no policy can be loaded from ``name``, with the way out; ``None`` where nothing is wrong, or of a hub id."""
    path = Path(name).expanduser()

    def fault(code: str, what: str) -> Refusal:
        return Refusal(f"model.name_or_path = {name!r} {what}", code=code)

    if not path.exists() and (command := maker_of(name)) is not None:
        what = f"does not ship. It takes a checkout of Evenkeel: run this there, then what you ran now: {command}"
        return fault("no-model-folder", what)
    if path.is_file():
        return fault("model-is-a-file", f"is a file. Name the folder that holds it: {path.parent}.")
    if not path.is_dir() and (not path.parent.is_dir() or len(path.parts) < 2):
        is_hub_id = not name.startswith((".", "/", "~")) and len(path.parts) <= 2
        what = "is neither an existing folder nor a hub id. Check the path."
        return None if is_hub_id else fault("no-model-folder", what)
    if not path.is_dir():
        near = closest(path.name, [each.name for each in path.parent.iterdir() if each.is_dir()])
        instead = f"Did you mean {path.parent / near[0]}?" if near else "Check the path."
        return fault("no-model-folder", f"is not a folder, though {path.parent} is one. {instead}")
    config = path / "config.json"
    if not config.is_file() and (path / "adapter_config.json").is_file():
        return fault(
            "adapter-without-model",
            "is a LoRA adapter, without the model that it belongs to. Merge the two first, and name the merged folder; "
            "to train a new adapter name the model itself.",
        )
    if not config.is_file():
        if checkpoints := sorted(path.glob("checkpoint-*"), key=lambda each: (len(each.name), each.name)):
            what = f"is the directory of a run, not a model. Name one of its checkpoints, such as {checkpoints[-1]}."
            return fault("run-as-model", what)
        what = "has no config.json, so it is not a model. Name a folder that save_pretrained wrote, or a checkpoint."
        return fault("no-model-config", what)
    try:
        json.loads(config.read_text())
    except (ValueError, OSError) as error:
        what = f"has a config.json that cannot be read: {error}. Copy or download the model again."
        return fault("unreadable-model-config", what)
    if index := next(iter(sorted(path.glob("*.index.json"))), None):
        wanted = sorted({*json.loads(index.read_text()).get("weight_map", {}).values()})
        if absent := [each for each in wanted if not (path / each).is_file()]:
            what = f"lacks {len(absent)} of its {len(wanted)} weight files, first {absent[0]}. Download it again."
            return fault("missing-weight-files", what)
    elif not any(True for pattern in _WEIGHTS for _ in path.glob(pattern)):
        return fault("no-weights", f"has no weights ({', '.join(_WEIGHTS)}). Download or save the model whole.")
    if not any((path / each).is_file() for each in _TOKENIZER):
        return fault("no-tokenizer", "has no tokenizer. Save the tokenizer of the same model there.")
    return None
