"""Comparison of an exported policy with the policy in its run."""

from collections.abc import Sequence
from typing import Any

import torch

from evenkeel.trainer.run.config import RunConfig

QUESTIONS = ("What is 2 + 3?", "Write a word that rhymes with tree.", "(7 - 4) * 5 =", "Why is the sky blue?")
TOKENS = 64
"""The longest answer that is compared."""
Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""A greedy completion: the prompt's tokens, its own, and their log-probabilities."""


def greedy_answers(policy: Any, tokenizer: Any, config: RunConfig, generation: Any) -> list[Answer]:
    """The most probable answers to `QUESTIONS`, asked as in the run; one at a time, without padding."""
    from transformers import GenerationConfig

    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=generation.eos_token_id,
        pad_token_id=generation.pad_token_id,
    )
    asked = config.data.system_prompt
    before = [] if asked is None else [{"role": "system", "content": asked}]
    answers = []
    for question in QUESTIONS:
        text = question
        if not config.model.raw_prompts:
            messages = [*before, {"role": "user", "content": question}]
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        batch = tokenizer(text, add_special_tokens=config.model.raw_prompts, return_tensors="pt")
        prompt = batch["input_ids"].to(policy.device)
        with torch.inference_mode():
            whole = policy.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), generation_config=greedy)
        tokens = whole[0, prompt.shape[1] :]
        answers.append((prompt[0], tokens, token_logps(policy, prompt[0], tokens)))
    return answers


def token_logps(policy: Any, prompt: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """``log π(token_t | prompt, token_<t)`` in float32, (T,)."""
    whole = torch.cat([prompt, tokens]).unsqueeze(0).to(policy.device)
    with torch.inference_mode():
        logits = policy(input_ids=whole, attention_mask=torch.ones_like(whole)).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1).gather(-1, tokens.to(policy.device).unsqueeze(-1)).squeeze(-1).cpu()


def largest_gap(answers: Sequence[Answer], policy: Any) -> float:
    """Largest absolute difference of a token's log-probability under ``policy`` from the one in ``answers``."""
    gaps = [(logps - token_logps(policy, prompt, tokens)).abs().max() for prompt, tokens, logps in answers]
    return float(torch.stack(gaps).max())
