"""Whether what was exported answers as the policy in the run does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

QUESTIONS = ("What is 2 + 3?", "Write a word that rhymes with tree.", "(7 - 4) * 5 =", "Why is the sky blue?")


@dataclass(frozen=True)
class Answer:
    """A greedy completion: its tokens and their log-probabilities, both (T,)."""

    prompt: torch.Tensor
    tokens: torch.Tensor
    logps: torch.Tensor


@dataclass(frozen=True)
class Agreement:
    """How two policies answer the same prompts.

    Attributes:
        prompts: how many were asked.
        same: how many got the same tokens.
        max_gap: largest absolute difference of the log-probability of a token of the first policy's answers.
    """

    prompts: int
    same: int
    max_gap: float

    def __str__(self) -> str:
        return (
            f"{self.same} of {self.prompts} greedy answers have the same tokens; log-probabilities differ by at most "
            f"{self.max_gap:.1e}"
        )


def conversations(system_prompt: str | None) -> list[list[dict[str, str]]]:
    """`QUESTIONS` as they are asked in the run."""
    before = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    return [[*before, {"role": "user", "content": question}] for question in QUESTIONS]


def greedy_answers(
    policy: Any, tokenizer: Any, asked: Sequence[Sequence[dict[str, str]]], generation: Any, max_new_tokens: int
) -> list[Answer]:
    """The most probable completion of each conversation, one at a time: padding must not enter."""
    from transformers import GenerationConfig

    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        eos_token_id=generation.eos_token_id,
        pad_token_id=generation.pad_token_id,
        repetition_penalty=generation.repetition_penalty,
    )
    answers = []
    for conversation in asked:
        prompt = tokenizer.apply_chat_template(
            list(conversation), add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )["input_ids"].to(policy.device)
        with torch.inference_mode():
            whole = policy.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), generation_config=greedy)
        tokens = whole[0, prompt.shape[1] :]
        answers.append(Answer(prompt[0], tokens, token_logps(policy, prompt[0], tokens)))
    return answers


def token_logps(policy: Any, prompt: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """``log π(token_t | prompt, token_<t)`` in float32, (T,)."""
    whole = torch.cat([prompt, tokens]).unsqueeze(0).to(policy.device)
    with torch.inference_mode():
        logits = policy(input_ids=whole, attention_mask=torch.ones_like(whole)).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1).gather(-1, tokens.to(policy.device).unsqueeze(-1)).squeeze(-1).cpu()


def agreement(
    before: Sequence[Answer], policy: Any, tokenizer: Any, asked: Sequence[Any], generation: Any, max_new_tokens: int
) -> Agreement:
    """``before``, the answers of another policy, against those of this one."""
    after = greedy_answers(policy, tokenizer, asked, generation, max_new_tokens)
    gaps = [
        (old.logps - token_logps(policy, old.prompt, old.tokens)).abs().max().item()
        for old in before
        if len(old.tokens)
    ]
    same = sum(torch.equal(old.tokens.cpu(), new.tokens.cpu()) for old, new in zip(before, after, strict=True))
    return Agreement(len(before), same, max(gaps, default=0.0))
