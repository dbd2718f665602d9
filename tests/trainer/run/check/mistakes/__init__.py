"""What users get wrong, each with what must be found of it, and what resembles that and is right.

A rule that its own room tests (settings, schedules, batches) is not here again.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal


@dataclass(frozen=True)
class Mistake:
    """A change to a run that is right.

    Attributes:
        name: what was got wrong, in words.
        code: of a finding of ``severity`` that there must be.
        overrides: laid over the right run's settings.
        says: the value, name or number that the finding must name.
    """

    name: str
    code: str
    overrides: tuple[str, ...] = ()
    severity: Literal["error", "warning", "note"] = "error"
    says: str = ""


def mistake(name: str, code: str, *overrides: str, **more: str) -> Mistake:
    """A `Mistake` whose overrides are the further texts."""
    return Mistake(name, code, overrides, **more)  # type: ignore[arg-type]


def warned(name: str, code: str, *overrides: str, **more: str) -> Mistake:
    """One that does not stop the run."""
    return mistake(name, code, *overrides, severity="warning", **more)


def model(name: str) -> str:
    """The override that names one of the workshop's models."""
    return f"model.name_or_path=models/{name}"


def rows(name: str) -> str:
    """The override that trains on one of the workshop's files."""
    return f"data.train.path=data/{name}"


UNREAD = "models/unread_template/chat_template.jinja"
FORM = "{verifier: {name: soft_overlong, max_tokens: 8, buffer_tokens: 2}}"
FORM_FIRST = (model("value_head"), f"rewards=[{FORM}, {{verifier: math_answer}}]")
FORM_ALONE = (model("huge"), "model.lora={r: 1, target_modules: [q_proj]}", f"rewards=[{FORM}]")
ROWS_TWICE = (model("other_eos"), rows("twice.jsonl"), "data.test.path=data/seen.jsonl", "trl.use_cpu=false")
"""What several warnings are found in, by one check."""

MODELS = [
    mistake("an id that no hub has", "unreadable-model", "model.name_or_path=no/such-model", says="no/such-model"),
    mistake("a folder that is not there", "no-model-folder", model("tinny")),
    mistake("a run's directory", "no-model", model("a_run"), says="checkpoint-4"),
    mistake("an adapter", "no-model", model("adapter")),
    mistake("no chat template", "tokenizer", model("no_template"), says="has no chat template"),
    mistake("no tokenizer", "tokenizer", model("no_tokenizer"), says="reads no text"),
    mistake("one file of a model", "no-model-folder", model("tiny/model.safetensors")),
    mistake("an encoder", "not-a-language-model", model("encoder")),
    mistake("a config.json that was cut off", "unreadable-model", model("cut_off")),
    mistake("code of its own without trust", "unreadable-model", model("own_code")),
    mistake("no end-of-text token", "tokenizer", model("no_eos"), says="eos_token"),
    warned("a turn that ends with another token", "turn-ends-without-eos", *ROWS_TWICE),
    mistake("a tokenizer with more words than the model", "tokens-beyond-embeddings", model("more_words")),
    mistake("a padding token beyond the embedding", "tokens-beyond-embeddings", model("padding_beyond")),
    mistake("completions beyond the context", "beyond-context", "trl.max_completion_length=4096", says="4096"),
    mistake("prompts beyond the context", "beyond-context", rows("long.jsonl"), says="128"),
    mistake("vLLM's length", "beyond-context", "trl.use_vllm=true", "trl.vllm_max_model_length=10", says="vllm_max"),
    warned("too large", "too-little-memory", *FORM_ALONE),
    mistake("checkpoints beyond the disk", "disk-too-small", model("huge")),
    mistake(
        "a layer more than the weights", "other-weights", model("layer_more"), says="model.layers.2.input_layernorm"
    ),
    mistake("wider layers than the weights", "other-weights", model("wider")),
    warned("a value model", "other-weights", *FORM_FIRST, says="v_head"),
    mistake("weights that were cut off", "damaged-weights", model("cut_weights"), says="cannot be read"),
    mistake("quantized weights without an adapter", "quantized-weights", model("quantized"), says="gguf"),
    mistake("weights in a GGUF file alone", "no-weights", model("gguf_alone")),
    mistake("no generation prompt", "no-generation-prompt", model("no_turn")),
    mistake("a system prompt that is dropped", "template-drops-message", model("no_system"), "data.system_prompt=b"),
    mistake("a template that no parser reads", "tokenizer", model("unread_template"), says="cannot write a question"),
    mistake("a template without the system role", "tokenizer", model("refused_system"), rows("system.jsonl")),
    mistake("a wrong value in a tokenizer's file", "tokenizer", model("wrong_tokenizer"), says="cannot be opened"),
]

ROWS = [
    mistake("a file, misspelt", "refusal", rows("rows.jsnl"), says="rows.jsonl?"),
    mistake("a column, misspelt", "refusal", "data.train.columns={prompt: promt}", says="prompt?"),
    warned("the same prompt twice", "repeated-prompts", *ROWS_TWICE),
    warned("trained on what is tested", "held-out-rows-trained", *ROWS_TWICE, says="4 of the 4"),
    mistake("a reference that is null", "unusable-reference", rows("null_reference.jsonl"), says="row 3"),
    mistake("held out, null", "unusable-reference", "data.test.path=data/null_reference.jsonl", says="data.test"),
    mistake("fewer rows than a rollout", "refusal", "data.train.max_rows=3", says="4"),
    warned("a prompt with its answer", "prompt-ends-with-answer", rows("answered.jsonl")),
]

REWARDS = [
    mistake("the only reward weighs nothing", "no-positive-weight", "rewards.0.weight=0.0", says="weight: 1.0"),
    warned("form alone is rewarded", "no-reward-reads-reference", *FORM_ALONE),
    warned("form decides what is right", "form-scored-first", *FORM_FIRST),
    warned("a form that no prompt asks for", "form-not-asked-for", *FORM_FIRST, says="boxed"),
    mistake("a revision for nothing", "unused-revision", "algorithm.revision={references: 2}", says="advantage: ibpo"),
    mistake("IBPO without its revision", "missing-revision", "algorithm.advantage=ibpo", says="revision: {references"),
]

LAUNCH = [
    warned("a GPU that is not there", "no-gpu", *ROWS_TWICE),
    mistake("the same tool twice", "tool-twice", "tools=[calculator, calculator]", says="calculator"),
    mistake("the best of one evaluation", "unknown-metric", "evaluation.keep_best=eval/avg", says="avg@1, and `every"),
]

RAW = "model.chat_template=raw"
BESIDE = "beside-raw-prompts"
PROMPTS = [
    mistake("rendered rows", "refusal", rows("rendered.jsonl"), says="Write model.chat_template: raw"),
    mistake("a raw conversation", "refusal", RAW, rows("system.jsonl"), says="several messages"),
    mistake("a raw system prompt", BESIDE, RAW, "data.system_prompt=b", says="columns.prompt"),
    mistake("a raw prefix", BESIDE, RAW, "model.assistant_prefix=b", says="columns.prompt"),
    mistake("raw turns", BESIDE, RAW, "tools=[calculator]"),
    mistake("options of no template", BESIDE, RAW, "trl.chat_template_kwargs={a: 1}"),
    mistake("a raw teacher", "raw-prompts", RAW, "algorithm.advantage=sdpo", says="teacher_logps"),
    mistake("a raw text that is begun twice", "begins-twice", RAW, model("begins"), rows("begun.jsonl"), says="<eos>"),
    mistake("a raw text that is ended", "tokenizer", RAW, model("ends"), says="add_eos_token"),
    mistake("no such template", "tokenizer", "model.chat_template=mine.jinja", says="mine.jinja"),
    mistake("a template file that no parser reads", "tokenizer", f"model.chat_template={UNREAD}", says=UNREAD),
]

MISTAKES: list[Mistake] = [*MODELS, *ROWS, *REWARDS, *LAUNCH, *PROMPTS]
if find_spec("vllm") is None:
    MISTAKES.append(mistake("no vLLM", "no-vllm", "trl.use_vllm=true", "trl.vllm_mode=colocate"))

RIGHT_SETTINGS = [
    (),
    ("trl.top_k=20",),
    ("trl.temperature=0.6", "trl.top_p=0.95"),
    ("trl.epsilon=0.2", "trl.epsilon_high=0.28"),
    ("trl.delta=4.0", "trl.loss_type=grpo"),
    ("trl.warmup_steps=0.25",),
    ("trl.warmup_steps=2.0",),
    ("model.lora={r: 4, task_type: CAUSAL_LM}",),
    ("model.dtype=bfloat16",),
    ("trl.generation_kwargs={renormalize_logits: true}",),
    ("name=a.b",),
    ("rewards=[{verifier: math_answer}]", "data.system_prompt='b \\boxed'"),
    ("rewards=[{verifier: {name: math_answer, answer_in: marked}}]", "data.system_prompt='Answer: 1'"),
]
"""What is laid over the right run and leaves it right: neither an error nor a warning."""
