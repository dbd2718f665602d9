"""Reward functions for the audit, each with the fault that its name says."""

import asyncio
import contextlib
import ctypes
import io
import logging
import os
import re
import socket
import sys
import time
import warnings

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


def always_pays(completions, **kwargs):
    return [1.0] * len(completions)


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


def mean_of_the_batch(completions, answer, **kwargs):
    rewards = good(completions, answer)
    return [reward - sum(rewards) / len(rewards) / 4 for reward in rewards]


calls = 0


def counts_calls(completions, answer, **kwargs):
    global calls
    calls += 1
    return [reward + calls / 1e6 for reward in good(completions, answer)]


def careless(completions, answer):
    rewards = good(completions, answer)
    answer.clear()
    sys.stdout.write(f"{rewards}\n")
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 9), timeout=0.1):
        pass
    return rewards


def takes_away(solution_str, ground_truth):
    return float(stated(solution_str) == ground_truth) - 1


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == "openai/gsm8k", data_source
    assert extra_info["question"]
    return {"score": float(stated(solution_str) == ground_truth), "acc": 0}


def numbers(solution_str, ground_truth):
    answer = stated(solution_str) or ""
    return float(answer.isdecimal() and answer == ground_truth)


def roles(solution_str, ground_truth):
    return float(stated(solution_str, "<answer>").startswith(ground_truth["solution_text_format"]))


def runs_the_tests_beside_the_program(solution_str, ground_truth):
    """Program and tests in one interpreter, and what the program returns compares itself."""
    program = solution_str.rpartition("```python\n")[2].partition("\n```")[0]
    scope: dict = {}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(program, scope)
            function = scope[ground_truth["fn_name"]]
            pairs = zip(ground_truth["inputs"], ground_truth["outputs"], strict=True)
            return float(all(function(*arguments) == output for arguments, output in pairs))
    except Exception:  # noqa: BLE001 as such graders do
        return 0.0


def no_reward_function(text, label):
    return 1.0


def substrings_of_roles(solution_str, ground_truth, format_reward=1, answer_reward=1.0):
    """Knights and knaves as a published rule reward reads them: behind the chat's header, each role by a search."""
    sys.stdout.write("judging\n")
    if "<|im_start|>assistant" not in solution_str:
        return -1 - abs(format_reward)
    response = solution_str.split("<|im_start|>assistant", 1)[1]
    places = [response.find(tag) for tag in ("<think>", "</think>", "<answer>", "</answer>")]
    if -1 in places or places != sorted(places):
        return -2 - abs(format_reward)
    answer = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)[-1]
    gold = dict(re.findall(r"\) (\w+) is a (knight|knave)", ground_truth["solution_text_format"]))
    if len(re.findall("knight|knave", answer.lower())) != len(gold):
        return format_reward - 2
    found = {name: re.search(rf"\b{name}\b\s+is\s+a\s+(knight|knave)", answer, re.IGNORECASE) for name in gold}
    if not all(found.values()):
        return format_reward - 2
    right = all(found[name][1].lower() == role for name, role in gold.items())
    return format_reward + (2 if right else -1.5)


def needs_another_header(solution_str, ground_truth):
    """Negative for everything that does not begin as its own chats do."""
    if not solution_str.startswith("Human and Assistant:"):
        return -2.0 - ("<think>" not in solution_str)
    return 3.0


def last_number(solution_str, ground_truth):
    """A grader of whole and decimal numbers, as those of GSM8K are."""
    if "####" not in solution_str:
        return 0.0
    numbers = re.findall(r"-?[0-9.,]*[0-9]", solution_str.rpartition("####")[2])
    return float(bool(numbers) and numbers[-1].replace(",", "") == str(ground_truth).replace(",", ""))


def logs_and_warns(completion, reference):
    """Prints nothing: what the logging and the warnings of libraries write is no print."""
    logging.getLogger(__name__).warning("read %r", completion)
    warnings.warn(f"{len(completion)} characters", stacklevel=1)
    return None if "inf" in completion else float(stated(completion) == reference)


def raises_always(solution_str, ground_truth):
    raise KeyError("header")
