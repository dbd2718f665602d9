"""Models, tokenizers and adapters that are not there, not whole, or not what a run can train; and lengths."""

from tests.trainer.run.check.mistakes.mistake import mistake


def instead(model: str) -> str:
    """The override that names one of the broken models."""
    return f"model.name_or_path=models/{model}"


MODELS = [
    mistake("an id that no hub has", "unreadable-model", "model.name_or_path=no/such-model", says="no/such-model"),
    mistake("a folder that is not there", "no-model-folder", "model.name_or_path=models/tinny"),
    mistake("a run's directory", "no-model", instead("a_run"), says="checkpoint-4"),
    mistake("an adapter", "no-model", instead("adapter")),
    mistake("no chat template", "tokenizer", instead("no_template"), says="has no chat template"),
    mistake("no tokenizer", "unexplained", instead("no_tokenizer")),
    mistake("a folder of something else", "no-model", "model.name_or_path=data"),
    mistake("one file of a model", "no-model-folder", "model.name_or_path=models/tiny/model.safetensors"),
    mistake("an encoder", "not-a-language-model", instead("encoder")),
    mistake("a config.json that was cut off", "unreadable-model", instead("cut_off")),
    mistake("code of its own without trust", "unreadable-model", instead("own_code")),
    mistake("no end-of-text token", "unexplained", instead("no_eos")),
    mistake("a turn that ends with another token", "turn-ends-without-eos", instead("other_eos"), severity="warning"),
    mistake("a tokenizer with more words than the model", "tokens-beyond-embeddings", instead("more_words")),
    mistake(
        "LoRA on names with a typo",
        "unexplained",
        "model.lora={r: 4, target_modules: [q_prj]}",
        says="q_prj",
    ),
    mistake(
        "completions beyond the context",
        "beyond-context",
        "trl.max_completion_length=4096",
        says="max_completion_length",
    ),
    mistake("prompts beyond the context", "beyond-context", "data.train.path=data/long.jsonl", says="128"),
    mistake("some prompts leave no room", "beyond-context", "data.train.path=data/some_long.jsonl"),
    mistake(
        "vLLM's length below the run's",
        "beyond-context",
        "trl.use_vllm=true",
        "trl.vllm_max_model_length=10",
        says="vllm_max_model_length",
    ),
    mistake(
        "more than the machine holds",
        "too-little-memory",
        instead("huge"),
        "model.lora={r: 1, target_modules: [q_proj]}",
        severity="warning",
    ),
    mistake("checkpoints beyond the disk", "disk-too-small", instead("huge")),
    mistake(
        "a layer more than the weights hold",
        "other-weights",
        instead("layer_more"),
        says="model.layers.2.input_layernorm.weight",
    ),
    mistake(
        "a layer fewer than the weights hold",
        "other-weights",
        instead("layer_less"),
        severity="warning",
        says="11 weights",
    ),
    mistake("a head that is not tied and not there", "other-weights", instead("untied"), says="lm_head.weight"),
    mistake("wider layers than the weights", "other-weights", instead("wider")),
    mistake(
        "a bias without a place", "other-weights", instead("a_bias"), severity="warning", says="model.layers.1.mlp.bias"
    ),
    mistake("a value model", "other-weights", instead("value_head"), severity="warning", says="v_head"),
    mistake("weights that were cut off", "unexplained", instead("cut_weights"), severity="warning"),
    mistake("no generation prompt", "no-generation-prompt", instead("no_turn")),
    mistake(
        "a system prompt that the template drops",
        "template-drops-message",
        instead("no_system"),
        "data.system_prompt=b",
        says="'system'",
    ),
]
