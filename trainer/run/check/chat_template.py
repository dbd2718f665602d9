"""Whether a chat template writes prompts that the policy can answer: whole, and with its own turn begun."""

from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.trainer.run.check.context import CheckContext, Finding, error
from evenkeel.trainer.run.library_errors import in_words

_ANSWER = "7"
_WRITTEN = ("system", "developer", "user")
"""Messages that a template must write as they are; of an assistant's it may leave out the thought."""
_MOST_ROWS = 200


def template_findings(context: CheckContext) -> Iterator[Finding]:
    """A prompt that ends before the assistant's turn; messages that the template leaves out."""
    if context.tokenizer is None:
        return
    name, prefix = context.config.model.name_or_path, context.config.model.assistant_prefix or ""
    if (cue := missing_cue(context.tokenizer, prefix)) is not None:
        yield error(
            "model",
            "no-generation-prompt",
            f"The chat template of {name!r} has no generation prompt: an assistant's turn begins with {cue!r}, and "
            "prompts end before it, so the policy would first have to write whose turn it is. Save the tokenizer with "
            "a chat_template that writes it under `{% if add_generation_prompt %}`, or write "
            f"model.assistant_prefix: {cue!r}.",
        )
    for part, rows in context.rows.items():
        for row, prompt in enumerate(rows["prompt"][:_MOST_ROWS]):
            if (fault := refused(context.tokenizer, prompt)) is not None:
                yield error(
                    "data",
                    "template-refuses-messages",
                    f"data.{part}, row {row}: the chat template of {name!r} cannot write its messages "
                    f"({', '.join(dict.fromkeys(str(message['role']) for message in prompt))}): {fault} Give the rows "
                    "in a form that it takes (a system message as part of the user's), or take another template.",
                )
                break
            if (role := left_out(context.tokenizer, prompt)) is not None:
                yield error(
                    "data",
                    "template-drops-message",
                    f"data.{part}, row {row}: the chat template of {name!r} leaves out the message of role {role!r}, "
                    "so the policy would never see it. Write its text into the user's message, or take another "
                    "template.",
                )
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


def refused(tokenizer: Any, prompt: Sequence[Any]) -> str | None:
    """What the template raises of a prompt, as many do of a system message; ``None`` where it writes it."""
    try:
        tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    except Exception as fault:  # noqa: BLE001
        return in_words(fault)
    return None


def left_out(tokenizer: Any, prompt: Sequence[Any]) -> str | None:
    """The role of the first message whose text is not in what the template writes; ``None`` where all are."""
    try:
        written = " ".join(str(tokenizer.apply_chat_template(prompt, tokenize=False)).split())
    except Exception:  # noqa: BLE001
        return None
    written_out = [message for message in prompt if message["role"] in _WRITTEN]
    return next((each["role"] for each in written_out if " ".join(each["content"].split()) not in written), None)
