"""Models, tokenizers and adapters that are not there, not whole, or not what a run can train; and lengths."""

from tests.trainer.run.check.mistakes.mistake import mistake


def instead(model: str) -> str:
    """The override that names one of the broken models."""
    return f"model.name_or_path=models/{model}"


MODELS = [
    mistake("an id that no hub has", "no/such-model", "model.name_or_path=no/such-model"),
    mistake("a folder that is not there", "Did you mean", "model.name_or_path=models/tinny"),
    mistake("a run's directory", "checkpoint-4", instead("a_run")),
    mistake("an adapter", "is a LoRA adapter", instead("adapter")),
    mistake("no chat template", "has no chat template", instead("no_template")),
    mistake("no tokenizer", "no tokenizer", instead("no_tokenizer")),
    mistake("no weights", "no weights", instead("no_weights")),
    mistake("one file of a model", "the folder that holds it", "model.name_or_path=models/tiny/model.safetensors"),
    mistake("an encoder", "not a causal language model", instead("encoder")),
    mistake("a config.json that was cut off", "config.json", instead("cut_off")),
    mistake("code of its own without trust", "trust_remote_code: true", instead("own_code")),
    mistake("no end-of-text token", "no end-of-text token", instead("no_eos")),
    mistake(
        "a turn that ends with another token", "ends an assistant's turn", instead("other_eos"), severity="warning"
    ),
    mistake("a tokenizer with more words than the model", "more tokens than the model", instead("more_words")),
    mistake("attention that is not installed", "flash_attn", "model.attn_implementation=flash_attention_2"),
    mistake("attention, misspelt", "flash_attention_2", "model.attn_implementation=flash-attention"),
    mistake("LoRA on names with a typo", "Did you mean q_proj?", "model.lora={r: 4, target_modules: [q_prj]}"),
    mistake("LoRA on another architecture's names", "match nothing", "model.lora={r: 4, target_modules: [c_attn]}"),
    mistake("one of LoRA's names matches nothing", "gate_prj", "model.lora={target_modules: [q_proj, gate_prj]}"),
    mistake("LoRA's targets as a pattern", "match nothing", "model.lora={target_modules: '.*attention.*'}"),
    mistake("layers in full that are not there", "modules_to_save", "model.lora={modules_to_save: [lm_heads]}"),
    mistake("completions beyond the context", "max_completion_length = 4096", "trl.max_completion_length=4096"),
    mistake("prompts beyond the context", "context of 128", "data.train.path=data/long.jsonl"),
    mistake("some prompts leave no room", "leave no room", "data.train.path=data/some_long.jsonl"),
    mistake("held-out prompts beyond the context", "data.test", "data.test.path=data/long.jsonl"),
    mistake(
        "vLLM's length below the run's",
        "vllm_max_model_length",
        "trl.use_vllm=true",
        "trl.vllm_max_model_length=10",
    ),
    mistake(
        "more than the machine holds",
        "it has",
        instead("huge"),
        "model.lora={r: 1, target_modules: [q_proj]}",
        severity="warning",
    ),
    mistake("checkpoints beyond the disk", "checkpoint", instead("huge")),
    mistake("a prefix that never opens a thought", "<think>", "model.assistant_prefix=think", severity="note"),
    mistake("a layer more than the weights hold", "model.layers.2.input_layernorm.weight", instead("layer_more")),
    mistake("a layer fewer than the weights hold", "hold 11 tensors for which", instead("layer_less")),
    mistake("weights without the final norm", "lack 1 tensors", instead("no_norm")),
    mistake("a head that is not tied and not there", "lm_head.weight", instead("untied")),
    mistake("wider layers than the weights", "[64, 32] in place of [80, 32]", instead("wider")),
    mistake("a bias without a place", "model.layers.1.mlp.bias", instead("a_bias")),
    mistake("a value model", "v_head", instead("value_head"), severity="warning"),
    mistake("a pickled file that lacks a layer", "lack 12 tensors", instead("pickled")),
    mistake("weights that were cut off", "its header speaks of", instead("cut_weights")),
    mistake("no generation prompt", "has no generation prompt", instead("no_turn")),
    mistake(
        "a system prompt that the template drops",
        "leaves out the message of role 'system'",
        instead("no_system"),
        "data.system_prompt=b",
    ),
]
