"""What vLLM needs, found before a model is loaded: a version that TRL drives, and room for a response."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Any

from rewards.registry import Refusal

SUPPORTED = ((0, 22, 0), (0, 31, 0))
"""The versions of vLLM that TRL 1.16 supports, the first and the last; a test reads them in TRL."""


class EngineError(Refusal):
    """vLLM is asked for and is absent, of another version, or too short for the prompts."""


def check_engine(args: Any, rows: Mapping[str, Any], tokenizer: Any) -> None:
    """Refuse a run with vLLM that would fail after its model was loaded.

    Args:
        rows: the run's datasets by name, with a column ``prompt`` of conversations.

    Raises:
        EngineError: with the way out.
    """
    if not args.use_vllm:
        return
    problem = version_problem(installed_version())
    if problem is not None:
        raise EngineError(problem)
    if args.vllm_mode == "colocate" and args.vllm_max_model_length is not None:
        lengths = {name: longest_prompt(dataset, tokenizer) for name, dataset in rows.items()}
        problem = length_problem(lengths, args.max_completion_length, args.vllm_max_model_length)
        if problem is not None:
            raise EngineError(problem)


def installed_version() -> str | None:
    """Of the distribution that the package ``vllm`` comes from; ``None`` where there is none."""
    if find_spec("vllm") is None:
        return None
    names = packages_distributions().get("vllm", ["vllm"])
    try:
        return version("vllm" if "vllm" in names else names[0])
    except PackageNotFoundError:
        return None


def version_problem(found: str | None) -> str | None:
    """What is wrong with this version of vLLM; ``None`` where nothing is."""
    first, last = (".".join(map(str, release)) for release in SUPPORTED)
    install = f"Install the extra: pip install -e '.[vllm]' -c constraints.txt (vLLM {last})"
    if found is None:
        return (
            "trl.use_vllm is true, but vLLM is not installed here; in server mode too the trainer talks to it through "
            f"its package. {install}, or write use_vllm: false."
        )
    release = tuple(map(int, re.findall(r"\d+", found)[:3]))
    if not SUPPORTED[0] <= release <= SUPPORTED[1]:
        return (
            f"vLLM {found} is installed, and TRL 1.16 supports {first} to {last}: others take weights through other "
            f"calls. {install}."
        )
    return None


def longest_prompt(dataset: Any, tokenizer: Any) -> int:
    """Tokens of the longest prompt as the policy reads it."""
    prompts = dataset["prompt"][:]
    written = tokenizer.apply_chat_template(prompts, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(written, add_special_tokens=False)["input_ids"]
    return max(map(len, ids), default=0)


def length_problem(longest: Mapping[str, int], completion: int, context: int) -> str | None:
    """Why an engine of so many tokens cannot answer; ``None`` where it can.

    Args:
        longest: of each dataset, tokens of its longest prompt.
        completion: tokens that may be generated.
        context: vLLM's max_model_len.
    """
    name = max(longest, key=lambda each: longest[each])
    needed = longest[name] + completion
    if needed <= context:
        return None
    return (
        f"trl.vllm_max_model_length = {context}, but the longest prompt of data.{name} has {longest[name]} tokens and "
        f"max_completion_length is {completion}: vLLM refuses a prompt that does not fit and cuts completions short. "
        f"Write vllm_max_model_length: {needed} or more, or leave it out for the model's own context."
    )
