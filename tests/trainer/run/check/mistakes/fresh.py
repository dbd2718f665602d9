"""Refusals that must help and settings that do not mean what they say: the half that was seen while they were written.

The other half is `aside`, written before and not read meanwhile.
"""

from tests.trainer.run.check.mistakes.mistake import Mistake, mistake

VLLM = ("trl.use_vllm=true", "trl.vllm_mode=colocate")

FRESH = [
    # names that TRL or transformers have removed, and those of TRL's own scripts
    mistake("LoRA's switch in TRL's scripts", "unknown-key", "trl.use_peft=true", says="lora"),
    mistake("warm-up as a share, by its old name", "unknown-key", "trl.warmup_ratio=0.1", says="warmup_steps"),
    Mistake(
        "an evaluation as a run",
        "no-rows",
        yaml="model: {name_or_path: models/tiny}\ndata: {test: {path: data/rows.jsonl}}\n"
        "rewards: [{verifier: exact_match}]\n",
        says="evenkeel evaluate",
    ),
    # parts
    # settings that do not mean what they say
    mistake("greedy by top_k", "one-token", "trl.top_k=1", says="0"),
]

RIGHT = [
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
]
"""Changes to the right run that leave it right: neither an error nor a warning."""
