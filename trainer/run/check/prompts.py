"""Prompts as the policy reads them: written whole by its chat template, its turn begun, with room for an answer."""

from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.errors import Problem, Refusal
from evenkeel.trainer.run.chat_template_trial import rendering_fault
from evenkeel.trainer.run.check.context import CheckContext, chosen_rows

_ANSWER = "7"
_WRITTEN = ("system", "developer", "user")
"""Messages that a template must write as they are; of an assistant's it may leave out the thought."""
_LOOKED_AT = 200
"""Rows whose messages are looked for in their prompts."""
_MODEL = ("model", "name_or_path")


def check_bounded(context: CheckContext) -> None:
    """Try the template on all rows that a check renders; one that does not end is rendered no further.

    Raises:
        Refusal: it took more time or memory than a template needs.
    """
    conversations: list[Any] = []
    for rows in context.rows.values():
        prompts = rows["prompt"][:]
        conversations += prompts[:_LOOKED_AT] + [prompts[row] for row in chosen_rows(prompts, context.most_rows)]
    fault = rendering_fault(context.tokenizer, conversations, context.argument("chat_template_kwargs"))
    if fault:
        context.unbuilt.add("tokenizer")
        raise Refusal(problems=[Problem(_MODEL, f"its chat template {fault}", code="tokenizer")])


def template_problems(context: CheckContext) -> Iterator[Problem]:
    """A prompt that ends before the assistant's turn; a turn that ends otherwise than a completion; lost messages."""
    tokenizer, prefix = context.tokenizer, context.config.model.assistant_prefix or ""
    if (cue := missing_cue(tokenizer, prefix)) is not None:
        yield Problem(
            _MODEL,
            f"its chat template has no generation prompt: an assistant's turn begins with {cue!r}, which the policy "
            "would have to write itself.",
            f"Write `model.assistant_prefix: {cue!r}`, or save the tokenizer with a template that writes it.",
            code="no-generation-prompt",
        )
    if (ending := _turn_ending(tokenizer)) is not None and (tokenizer.eos_token or ending) not in ending:
        yield Problem(
            _MODEL,
            f"its chat template ends a turn with {ending!r}, and completions end with {tokenizer.eos_token!r}, which "
            "the policy has not learned to write.",
            "Save the tokenizer with that eos_token.",
            code="turn-ends-without-eos",
            severity="warning",
        )
    for part, rows in context.rows.items():
        for row, prompt in enumerate(rows["prompt"][:_LOOKED_AT]):
            if (role := left_out(tokenizer, prompt)) is not None:
                what = f"row {row}: the model's chat template leaves out the message of role {role!r}."
                instead = "Write its text into the user's message, or take another template."
                yield Problem(("data", *part.split(".")), what, instead, code="template-drops-message")
                break


def missing_cue(tokenizer: Any, prefix: str) -> str | None:
    """What the template writes between a question and its answer, and leaves out of a prompt; ``None`` = nothing.

    A template that has nothing there, as Mistral's, needs no generation prompt.
    """
    question = [{"role": "user", "content": "1"}]
    try:
        prompt = str(tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False))
        bare = str(tokenizer.apply_chat_template(question, add_generation_prompt=False, tokenize=False))
        answered = str(
            tokenizer.apply_chat_template([*question, {"role": "assistant", "content": _ANSWER}], tokenize=False)
        )
    except Exception:  # noqa: BLE001 — a chat template is a program of its own
        return None
    begun = bare.rstrip().removesuffix(tokenizer.eos_token or "").rstrip()  # some write it in the prompt's place
    if not answered.startswith(begun) or prompt.removesuffix(prefix) != bare:
        return None
    cue = answered[len(begun) :].partition(_ANSWER)[0].strip()
    return cue if cue and cue not in prefix else None


def left_out(tokenizer: Any, prompt: Sequence[Any]) -> str | None:
    """The role of the first message whose text is not in what the template writes; ``None`` where all are."""
    try:
        written = " ".join(str(tokenizer.apply_chat_template(prompt, tokenize=False)).split())
    except Exception:  # noqa: BLE001
        return None
    written_out = [message for message in prompt if message["role"] in _WRITTEN]
    return next((each["role"] for each in written_out if " ".join(each["content"].split()) not in written), None)


def _turn_ending(tokenizer: Any) -> str | None:
    """What the chat template writes after an assistant's message; ``None`` where it is not known."""
    turns = [{"role": "user", "content": "1"}, {"role": "assistant", "content": _ANSWER}]
    try:
        written = str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # noqa: BLE001
        return None
    before, found, ending = written.rpartition(_ANSWER)
    return ending.strip() if found and before and ending.strip() else None


def length_problems(context: CheckContext) -> Iterator[Problem]:
    """Prompts with which a completion does not fit into the model's context, or into vLLM's."""
    completion = context.argument("max_completion_length")
    limits = [("the model's context", context.max_positions)]
    if context.argument("use_vllm"):
        limits.append(("trl.vllm_max_model_length", context.argument("vllm_max_model_length")))
    longest = max((max(lengths) for lengths in context.prompt_lengths.values()), default=0)
    for name, limit in limits:
        if limit is not None and longest + completion > limit:
            room = limit - longest
            instead = f"Write {room} at most, or drop the longest rows." if room > 0 else "Drop the longest rows."
            yield Problem(
                ("trl", "max_completion_length"),
                f"is {completion}, and the longest prompt has {longest} tokens: more than {name} of {limit}, to which "
                "TRL cuts nothing.",
                instead,
                code="beyond-context",
            )
