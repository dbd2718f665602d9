"""Makes a tiny language model that reinforcement learning can visibly improve on two CPU cores.

    python -m scripts.tiny_policy.make countdown --output configs/tiny_policy/countdown

It is a real causal model in the Qwen3 architecture with a word-level tokenizer, trained from random weights on puzzles
that a program wrote, in two phases: careful demonstrations until it can solve the puzzles, then briefly a mixture with
hasty ones, so that it often does not bother to. What it does when sampled is measured on puzzles that it has never
seen and written into its model card.
"""

import argparse
import inspect
import platform
import random
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from trl.chat_template_utils import parse_response

from evenkeel.rewards.environments.row_environment import CONTROL
from scripts.tiny_policy.architecture import tiny_model, tiny_tokenizer
from scripts.tiny_policy.games_demonstrations import Messages
from scripts.tiny_policy.tasks import HELD_OUT, TASKS, Puzzle, Task

BATCH = 32  # demonstrations a step of the warm-up
LONGEST = 256  # tokens of prompt and completion in the warm-up


def prompt_text(tokenizer: Any, question: str) -> str:
    """``question`` as the chat template puts it, up to where the assistant speaks."""
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
    )
    return str(text)


def warm_up_phase(
    model: Any, tokenizer: Any, puzzles: Sequence[Puzzle], *, steps: int, hasty: float, peak: float, seed: int
) -> None:
    """``steps`` AdamW steps of 32 demonstrations, a share ``hasty`` of them hasty; the rate a cosine from ``peak``."""
    rng = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, min(50, steps // 4), steps)
    model.train()
    for step, batch in enumerate(islice(demonstration_batches(tokenizer, puzzles, hasty, rng), steps)):
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 99:
            print(f"step {step + 1:5d}  loss {loss.item():.4f}", flush=True)


def demonstration_batches(
    tokenizer: Any, puzzles: Sequence[Puzzle], hasty: float, rng: random.Random
) -> Iterator[dict[str, Any]]:
    """Batches without end, as tensors (B, T); the labels of prompt and padding are −100."""
    while True:
        rows = [_demonstrated(tokenizer, puzzles, hasty, rng) for _ in range(8 * BATCH)]
        if not hasty:  # like lengths together: a third less padding. A mixture stays mixed, hasty ones are short.
            rows.sort(key=lambda pair: len(pair[0]))
        batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        rng.shuffle(batches)
        yield from (_padded(batch, tokenizer.pad_token_id) for batch in batches)


def _demonstrated(
    tokenizer: Any, puzzles: Sequence[Puzzle], hasty: float, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Token ids and labels of a random puzzle and a demonstration for it."""
    while True:
        puzzle = rng.choice(puzzles)
        completion = puzzle.demonstrate(rng, rng.random() >= hasty)
        if completion is None:
            continue
        ids, labels = tokenized(tokenizer, puzzle, completion)
        if len(ids) <= LONGEST:
            return ids, labels


def tokenized(tokenizer: Any, puzzle: Puzzle, completion: str | Messages) -> tuple[list[int], list[int]]:
    """Token ids of ``puzzle`` with ``completion``, and labels: −100 but for what the assistant writes."""
    if isinstance(completion, str):
        prompt = tokenizer(prompt_text(tokenizer, puzzle.question)).input_ids
        answer = [*tokenizer(completion).input_ids, tokenizer.eos_token_id]
        return prompt + answer, [-100] * len(prompt) + answer
    encoded = tokenizer.apply_chat_template(
        [{"role": "user", "content": puzzle.question}, *completion],
        tools=tools_of(puzzle.environment()),
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    ids, is_written = encoded["input_ids"], encoded["assistant_masks"]
    return ids, [token if written else -100 for token, written in zip(ids, is_written, strict=True)]


def _padded(rows: Sequence[tuple[list[int], list[int]]], pad: int) -> dict[str, Any]:
    width = max(len(ids) for ids, _ in rows)
    padded = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in rows])
    labels = torch.tensor([each + [-100] * (width - len(each)) for _, each in rows])
    return {"input_ids": padded, "labels": labels, "attention_mask": padded != pad}


@torch.no_grad()
def completions(model: Any, tokenizer: Any, puzzles: Sequence[Puzzle], *, sample: bool, seed: int) -> list[str]:
    """One completion a puzzle, sampled at temperature 1 or greedy, of at most 256 tokens."""
    torch.manual_seed(seed)
    model.eval()
    prompts = tokenizer(
        [prompt_text(tokenizer, puzzle.question) for puzzle in puzzles], padding=True, return_tensors="pt"
    )
    written = model.generate(
        input_ids=prompts.input_ids, attention_mask=prompts.attention_mask, max_new_tokens=256, do_sample=sample
    )
    texts = tokenizer.batch_decode(written[:, prompts.input_ids.shape[1] :], skip_special_tokens=True)
    return [str(text) for text in texts]


def played(
    model: Any, tokenizer: Any, puzzles: Sequence[Puzzle], *, sample: bool, seed: int, turns: int = 16
) -> tuple[list[Messages], list[float]]:
    """What is said in one round of each puzzle, and what it earns; all puzzles have the same kind of environment."""
    torch.manual_seed(seed)
    model.eval()
    environments = [puzzle.environment() for puzzle in puzzles]
    said: list[Messages] = [[{"role": "user", "content": puzzle.question}] for puzzle in puzzles]
    for environment, puzzle in zip(environments, puzzles, strict=True):
        environment.reset(reference=puzzle.reference)
    tools = tools_of(environments[0])
    going = list(range(len(puzzles)))
    for _ in range(turns):
        texts = tokenizer.apply_chat_template(
            [said[row] for row in going], tools=tools, add_generation_prompt=True, tokenize=False
        )
        prompts = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            written = model.generate(**prompts, max_new_tokens=64, do_sample=sample)[:, prompts.input_ids.shape[1] :]
        messages = [
            parse_response(tokenizer, [token for token in ids if token != tokenizer.pad_token_id], prefix=text)
            for ids, text in zip(written.tolist(), tokenizer(texts).input_ids, strict=True)
        ]
        for row, message in zip(going, messages, strict=True):
            said[row].append(message)
            for call in message.get("tool_calls", []):
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                try:
                    answer = getattr(environments[row], name)(**arguments)
                except Exception as error:  # noqa: BLE001 — read by the policy
                    answer = str({"error": str(error)})
                said[row].append({"role": "tool", "name": name, "content": answer})
        going = [row for row in going if said[row][-1]["role"] == "tool"]
        if not going:
            break
    return said, [earned(*each) for each in zip(environments, puzzles, said, strict=True)]


def earned(environment: Any, puzzle: Puzzle, said: Messages) -> float:
    """What a round earns: by its environment, or by the verifier of the last message where it has no reward."""
    if hasattr(environment, "get_reward"):
        return float(environment.get_reward())
    return float(puzzle.verifier(said[-1]["content"], puzzle.reference).score or 0.0)


def tools_of(environment: Any) -> list[Any]:
    """The methods of ``environment`` that a policy may call."""
    methods = inspect.getmembers(environment, inspect.ismethod)
    return [method for name, method in methods if name[0] != "_" and name not in CONTROL]


def accuracy(puzzles: Sequence[Puzzle], texts: Sequence[str]) -> float:
    """Share of ``texts`` that earn the full score."""
    right = [
        puzzle.verifier(text, puzzle.reference).score == puzzle.verifier.full_score
        for puzzle, text in zip(puzzles, texts, strict=True)
    ]
    return sum(right) / len(right)


def write_folder(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write model and tokenizer to ``folder``: weights rounded to bfloat16 to halve the file, loaded as float32."""
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    weights = folder / "model.safetensors"
    rounded = {name: tensor.bfloat16() for name, tensor in load_file(weights).items()}
    save_file(rounded, weights, metadata={"format": "pt"})


def model_card(name: str, task: Task, command: str, model: Any, seconds: float, numbers: dict[str, str]) -> str:
    """The folder's README: what the model is, how it was made, what it does, what it is for and not for."""
    return CARD.format(
        task=name,
        command=command,
        parameters=f"{model.num_parameters():,}",
        layers=task.layers,
        hidden_size=model.config.hidden_size,
        words=model.config.vocab_size,
        writes=task.writes,
        minutes=f"{seconds / 60:.0f}",
        threads=torch.get_num_threads(),
        python=platform.python_version(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        rows="\n".join(f"| {what} | {value} |" for what, value in numbers.items()),
        of_each=" of each kind" if len(task.puzzles) > 1 else "",
        held_out=HELD_OUT,
        pool=task.pool_size,
    )


CARD = """# Tiny policy: {task}

A causal language model in the Qwen3 architecture with {parameters} parameters ({layers} layers, hidden size
{hidden_size}, tied embeddings) and a word-level tokenizer of {words} words. It writes
{writes} and ends the turn with `<|end|>`.
[What all tiny policies share](../../README.md#tiny-policies).

## How it was made

    {command}

It took {minutes} minutes with {threads} thread(s) on a busy machine, with Python {python},
torch {torch} and transformers {transformers}.

## What it does

Measured on the first {held_out} puzzles{of_each} of a seeded list; sampled = temperature 1. The next {pool} are for
reinforcement learning, the warm-up used the rest.

| | |
|---|---|
{rows}
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    command.add_argument("task", choices=sorted(TASKS))
    command.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="files there are replaced")
    command.add_argument("--seed", type=int, default=0, help="of the weights and the demonstrations; default 0")
    command.add_argument("--careful-steps", type=int, default=2500, help="batches of 32 careful demonstrations")
    command.add_argument("--mixed-steps", type=int, default=100, help="batches in which some are hasty")
    command.add_argument("--hidden-size", type=int, default=128, help="256 and 512 make it 4 and 16 times larger")
    command.add_argument("--hasty", type=float, default=0.5, help="their share; default 0.5")
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the model that ``arguments`` ask for, measure it, and write it with its card."""
    options = parser().parse_args(arguments)
    if not 0 <= options.hasty <= 1:
        sys.exit(f"make: --hasty {options.hasty} is not a share of the demonstrations; write 0 to 1")
    if options.hidden_size < 64 or options.hidden_size % 64:
        sys.exit(
            f"make: --hidden-size {options.hidden_size} is not a multiple of 64, two heads of 32; write 128, 256 or 512"
        )
    started = time.perf_counter()
    torch.manual_seed(options.seed)
    task = TASKS[options.task]()
    tokenizer = tiny_tokenizer(task.vocabulary, task.tokens, calls_tools=task.calls_tools)
    model = tiny_model(tokenizer, task.layers, options.hidden_size)
    phase = partial(warm_up_phase, model, tokenizer, task.warm_up)
    rate = 128 / options.hidden_size  # wider layers want smaller steps
    phase(steps=options.careful_steps, hasty=0.0, peak=2e-3 * rate, seed=options.seed)
    careful = measured(model, tokenizer, task)
    phase(steps=options.mixed_steps, hasty=options.hasty, peak=5e-4 * rate, seed=options.seed + 1)
    write_folder(options.output, model, tokenizer)
    model = transformers.AutoModelForCausalLM.from_pretrained(options.output)
    numbers = {f"after the careful phase, {what}": value for what, value in careful.items()}
    numbers |= {f"**as shipped, {what}**": value for what, value in measured(model, tokenizer, task).items()}
    command = (
        f"python -m scripts.tiny_policy.make {options.task} --output {options.output} --seed {options.seed}"
        f" --careful-steps {options.careful_steps} --mixed-steps {options.mixed_steps} --hasty {options.hasty}"
        + (f" --hidden-size {options.hidden_size}" if options.hidden_size != 128 else "")
    )
    card = model_card(options.task, task, command, model, time.perf_counter() - started, numbers)
    (options.output / "README.md").write_text(card, encoding="utf-8")
    print("\n".join(f"{what}: {value}" for what, value in numbers.items()))


def measured(model: Any, tokenizer: Any, task: Task) -> dict[str, str]:
    """Accuracy on the held-out puzzles of each kind, sampled and greedy, and how much is written."""
    numbers: dict[str, str] = {}
    for kind, puzzles in task.held_out.items():
        of_kind = f"{kind}, " if len(task.puzzles) > 1 else ""
        if task.calls_tools:
            said, scores = played(model, tokenizer, puzzles, sample=True, seed=0)
            _, greedy_scores = played(model, tokenizer, puzzles, sample=False, seed=0)
            calls = sum(message["role"] == "tool" for conversation in said for message in conversation)
            numbers |= {
                f"{of_kind}sampled accuracy": f"{sum(scores) / len(scores):.3f}",
                f"{of_kind}greedy accuracy": f"{sum(greedy_scores) / len(scores):.3f}",
                f"{of_kind}sampled, mean calls": f"{calls / len(said):.1f}",
            }
            continue
        sampled = completions(model, tokenizer, puzzles, sample=True, seed=0)
        greedy = completions(model, tokenizer, puzzles, sample=False, seed=0)
        words = sum(len(text.split()) for text in sampled) / len(sampled)
        numbers |= {
            f"{of_kind}sampled accuracy": f"{accuracy(puzzles, sampled):.3f}",
            f"{of_kind}greedy accuracy": f"{accuracy(puzzles, greedy):.3f}",
            f"{of_kind}sampled completion, mean words": f"{words:.0f}",
        }
    return numbers


if __name__ == "__main__":
    main()
