"""Prompts as the policy reads them: complete, with its turn begun, and with room for an answer."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from evenkeel.errors import Problem
from evenkeel.trainer.run.chat_template_trial import rendering_fault
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.data.conversations import TEMPLATE_MARKS, as_messages

_ANSWER = "7"
_WRITTEN = ("system", "developer", "user")
"""Roles whose messages a template must write unchanged; it may leave the thought out of an assistant's."""
_LOOKED_AT = 200
"""Rows of each set whose messages are looked for in the rendered prompt."""
_HEADING = "####"  # which vocabularies have for Markdown
_FORM = re.compile(rf"\\boxed|</?answer>|{_HEADING}")


def check_bounded(context: CheckContext) -> None:
    """Try the template on all rows that a check renders, unless they are raw; after a failure no other renders it.

    Raises:
        Refusal: it exceeded the limits of time or memory.
    """
    if context.config.model.raw_prompts:
        return
    conversations: list[Any] = []
    for part, rows in context.rows.items():
        conversations += rows["prompt"][:_LOOKED_AT] + context.longest[part]
    options = context.config.argument("chat_template_kwargs")
    if fault := rendering_fault(context.tokenizer, conversations, options):
        what = f"its chat template {fault}"
        refusal = config_error("tokenizer", context.config.model.template_place, what)
        context.faults["tokenizer"] = refusal
        raise refusal


def template_problems(context: CheckContext) -> Iterator[Problem]:
    """Prompts without the start of the assistant's turn; turns that do not end with EOS; messages left out."""
    if context.config.model.raw_prompts:
        yield from _raw_problems(context)
        return
    tokenizer, model = context.tokenizer, context.config.model
    place, prefix = tuple(model.template_place.split(".")), model.assistant_prefix or ""
    if (cue := missing_cue(tokenizer, prefix)) is not None:
        what = f"has a chat template without a generation prompt: the policy would have to begin with {cue!r}."
        yield Problem(place, what, f"Write `model.assistant_prefix: {cue!r}`.", code="no-generation-prompt")
    if (ending := _turn_ending(tokenizer)) is not None and (tokenizer.eos_token or ending) not in ending:
        what = f"has a chat template that ends turns with {ending!r}, and completions end with {tokenizer.eos_token!r}."
        instead = "Save the tokenizer with the former as eos_token."
        yield Problem(place, what, instead, code="turn-ends-without-eos", severity="warning")
    for part, rows in context.rows.items():
        for row, prompt in enumerate(rows["prompt"][:_LOOKED_AT]):
            if (role := left_out(tokenizer, prompt)) is not None:
                what = f"row {row}: the model's chat template leaves out the message of role {role!r}."
                yield Problem(("data", *part.split(".")), what, code="template-drops-message")
                break


def _raw_problems(context: CheckContext) -> Iterator[Problem]:
    """A special token that rows and tokenizer both begin with; chat markup of another model; and how prompts end."""
    tokenizer = context.tokenizer
    one = tokenizer("1", return_special_tokens_mask=True)
    begins = tokenizer.decode(one["input_ids"][:1]) if one["special_tokens_mask"][:1] == [1] else ""
    known = tokenizer.get_vocab()
    unknown = [mark for mark in TEMPLATE_MARKS if mark not in known]
    for part, rows in context.rows.items():
        place, prompts = ("data", *part.split(".")), rows["prompt"][:_LOOKED_AT]
        what = f"prompts are fed as they are; the first ends in {prompts[0][-30:]!r}."
        yield Problem(place, what, code="raw-prompts", severity="note")
        if begins and any(prompt.startswith(begins) for prompt in prompts):
            what = f"has prompts that begin with {begins!r}, which the tokenizer writes too."
            yield Problem(place, what, "Take it out of the rows.", code="begins-twice")
        for mark in unknown:
            if any(mark in prompt for prompt in prompts):
                what = f"has prompts with {mark}, which is no token of this model."
                yield Problem(place, what, code="markup-of-another-model", severity="warning")


def _written(tokenizer: Any, messages: Sequence[Any], **options: Any) -> str | None:
    """The messages as the chat template renders them; ``None`` where it raises."""
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, **options))
    except Exception:  # noqa: BLE001
        return None


_QUESTION = [{"role": "user", "content": "1"}]
_ANSWERED = [*_QUESTION, {"role": "assistant", "content": _ANSWER}]


def missing_cue(tokenizer: Any, prefix: str) -> str | None:
    """The text between a question and its answer that the template leaves out of a prompt; ``None`` = none.

    A template without such text, as Mistral's, needs no generation prompt.
    """
    prompt, bare = (_written(tokenizer, _QUESTION, add_generation_prompt=each) for each in (True, False))
    answered = _written(tokenizer, _ANSWERED)
    if prompt is None or bare is None or answered is None:
        return None
    begun = bare.rstrip().removesuffix(tokenizer.eos_token or "").rstrip()  # some end a prompt with EOS
    if not answered.startswith(begun) or prompt.removesuffix(prefix) != bare:
        return None
    cue = answered[len(begun) :].partition(_ANSWER)[0].strip()
    return cue if cue and cue not in prefix else None


def left_out(tokenizer: Any, prompt: Sequence[Any]) -> str | None:
    """The role of the first message whose text the template leaves out; ``None`` where it writes all."""
    if (written := _written(tokenizer, prompt)) is None:
        return None
    text = " ".join(written.split())
    asked = [message for message in prompt if message["role"] in _WRITTEN]
    return next((each["role"] for each in asked if " ".join(each["content"].split()) not in text), None)


def _turn_ending(tokenizer: Any) -> str | None:
    """The text that the chat template writes after an assistant's message; ``None`` where unknown."""
    _, found, ending = (_written(tokenizer, _ANSWERED) or "").rpartition(_ANSWER)
    return ending.strip() or None if found else None


def form_problems(context: CheckContext) -> Iterator[Problem]:
    """Answers read in a form that the first prompt neither asks for nor shows, of a policy without a word for it.

    The form is that of the gold completion; it is needed where that earns less without its marks.
    """
    rows, known = context.rows["train"], context.tokenizer.get_vocab()
    tasks = [*rows["task"]] if "task" in rows.column_names else []
    for number, reward in enumerate(context.config.rewards):
        verifier = context.experiment.verifiers.get(reward.label)
        if verifier is None:
            continue
        row = rows[tasks.index(reward.task) if reward.task else 0]
        gold = verifier.gold_completion(row["reference"]) or ""
        marks = [mark for mark in _FORM.findall(gold) if mark == _HEADING or mark not in known]
        (prompt,) = context.rendered("train", [row["prompt"]])
        if not marks or any(mark in prompt for mark in marks):
            continue
        asked = "\n".join(message["content"] for message in as_messages(row["prompt"]))
        bare, *shown = verifier.judge_all([_FORM.sub("", gold), prompt, asked], [row["reference"]] * 3)
        if bare.score != verifier.full_score and not any(each.answer for each in shown):
            what = f"reads answers in {' '.join(marks)}, and its prompts do not ask for that."
            instead = "Ask for it in data.system_prompt: nothing else is paid."
            yield Problem(("rewards", number), what, instead, code="form-not-asked-for", severity="warning")


def length_problems(context: CheckContext) -> Iterator[Problem]:
    """Prompts too long for the longest completion to fit into the model's context, or into vLLM's."""
    argument = context.config.argument
    completion = argument("max_completion_length")
    limits = [("the model's context", getattr(context.text_settings, "max_position_embeddings", None))]
    if argument("use_vllm"):
        limits.append(("trl.vllm_max_model_length", argument("vllm_max_model_length")))
    longest = max(context.longest_prompts.values(), default=0)
    for name, limit in limits:
        if isinstance(limit, int) and 0 < limit < longest + completion:
            what = f"is {completion}, and prompts have up to {longest} tokens: more than {name} of {limit}."
            yield Problem(
                ("trl", "max_completion_length"), what, "Write less, or drop the longest rows.", code="beyond-context"
            )
