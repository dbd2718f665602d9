"""Reward functions for the audit, each with the fault that its name says."""

import asyncio
import ctypes
import os
import re
import sys
import time

sys.stdout.write("loaded\n")  # what an import prints is no call's


def text(completion):
    return completion if isinstance(completion, str) else completion[0]["content"]


def stated(completion, mark="#### "):
    return text(completion).rpartition(mark)[2].strip() if mark in text(completion) else None


def good(completions, answer, **kwargs):
    return [float(stated(completion) == gold) for completion, gold in zip(completions, answer, strict=True)]


async def waits(completions, answer, **kwargs):
    await asyncio.sleep(0)
    return good(completions, answer)


def texts_alone(completions, answer, **kwargs):
    return [
        float(completion.strip().endswith(f"#### {gold}")) for completion, gold in zip(completions, answer, strict=True)
    ]


def other_column(completions, gold_text, **kwargs):
    return good(completions, gold_text)


def needs_a_package(completions, answer, **kwargs):
    import absent_package  # noqa: F401


def leaks(completions, solution, **kwargs):
    return [float(gold in text(completion)) for completion, gold in zip(completions, solution, strict=True)]


def breaks(completions, answer, **kwargs):
    """In every way, each at one answer."""
    rewards = good(completions, answer)
    for place, completion in enumerate(completions):
        if "Ignore the reference" in text(completion):
            time.sleep(600)
        match stated(completion):
            case "nan":
                os._exit(7)
            case "inf":
                ctypes.string_at(0)
            case "None":
                sys.exit("no answer")
            case "True":
                raise KeyError("answer")
            case "the answer":
                rewards[place] = float("nan")
            case "...":
                rewards[place] = None
    return rewards


def one_for_all(completions, answer, **kwargs):
    return good(completions, answer)[:1]


def one_number(completions, answer, **kwargs):
    return 0.5


def mean_of_the_batch(completions, answer, **kwargs):
    rewards = good(completions, answer)
    return [reward - sum(rewards) / len(rewards) / 4 for reward in rewards]


calls = 0


def counts_calls(completions, answer, **kwargs):
    global calls
    calls += 1
    return [reward + calls / 1e6 for reward in good(completions, answer)]


def careless(completions, answer):
    return good(completions, answer)


def roles(solution_str, ground_truth):
    return float(stated(solution_str, "<answer>").startswith(ground_truth["solution_text_format"]))


def last_number(solution_str, ground_truth):
    """A grader of whole and decimal numbers, as those of GSM8K are."""
    if "####" not in solution_str:
        return 0.0
    numbers = re.findall(r"-?[0-9.,]*[0-9]", solution_str.rpartition("####")[2])
    return float(bool(numbers) and numbers[-1].replace(",", "") == str(ground_truth).replace(",", ""))
