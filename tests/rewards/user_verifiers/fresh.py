"""Verifiers that change, forget or exaggerate, and honest ones: what the trial should say of each.

Every second one of a list was set aside before anything was fixed.
"""

import itertools
import os
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from evenkeel.rewards import Verdict
from evenkeel.rewards.user_verifiers import traits

Judge = Callable[[str, Any], Any]


def right(completion: str, reference: Any) -> float:
    return float(completion.split()[-1:] == [str(reference)])


_calls = itertools.count()
_seen: set[tuple[str, str]] = set()
_warm: list[str] = []


def _first_time(completion: str, reference: Any) -> float:
    key = completion, str(reference)
    is_new = key not in _seen
    _seen.add(key)
    return float(is_new and len(completion) < 5000)


def _like_the_last(completion: str, reference: Any) -> float:
    last = _warm[-1] if _warm else ""
    _warm.append(str(reference))
    return float(last == reference)


VERDICTS: dict[str, tuple[Judge, str]] = {
    "nothing is judged": (lambda completion, reference: None, "judges nothing"),
    "nothing is judged, with a reason": (
        lambda completion, reference: Verdict(None, None, "to be written"),
        "judges nothing.*to be written",
    ),
    "only the empty text is judged": (
        lambda completion, reference: None if completion else 0.0,
        "a bad completion is wrong",
    ),
    "a text without a box is not judged": (
        lambda completion, reference: right(completion, reference) if "boxed" in completion else None,
        "a bad completion is wrong",
    ),
    "a long text is not judged": (
        lambda completion, reference: right(completion, reference) if len(completion) < 4000 else None,
        "a bad completion is wrong",
    ),
    "the empty text is not judged": (
        lambda completion, reference: right(completion, reference) if completion else None,
        "a bad completion is wrong",
    ),
    "a coin": (lambda completion, reference: float(random.Random().random() < 0.5), "changes from call to call"),
    "a random number": (lambda completion, reference: int.from_bytes(os.urandom(2)) / 65536, "changes from call"),
    "every third call": (lambda completion, reference: float(next(_calls) % 5 == 0), "changes from call to call"),
    "only the first time": (_first_time, "changes from call to call"),
    "by the reference before": (_like_the_last, "changes from call to call"),
    "by the clock": (lambda completion, reference: time.perf_counter() % 1, "changes from call to call"),
    "now and then unjudged": (
        lambda completion, reference: None if random.Random().random() < 0.5 else right(completion, reference),
        "changes from call to call|a bad completion is wrong",
    ),
    "1e38": (lambda completion, reference: 1e38, r"1e\+38"),
    "1e38 for what is right": (lambda completion, reference: 1e38 * (str(reference) in completion), r"1e\+38"),
    "-1e38 for what is long": (lambda completion, reference: -1e38 if len(completion) > 4000 else 0.0, r"-1e\+38"),
    "1e20": (lambda completion, reference: Verdict(1e20 * (len(completion) > 4000), None, ""), r"1e\+20"),
    "1e300": (lambda completion, reference: np.float64(1e300) if completion else 0, r"1e\+300"),
    "a whole number of 30 digits": (lambda completion, reference: 10**30 * len(completion), r"e\+3"),
    "an infinite tensor": (lambda completion, reference: torch.tensor(float("inf")), "inf"),
}


@traits(reads_reference=False)
def _any_text(completion: str, reference: Any) -> float:
    return 1e6 if len(completion) < 100 else -1e6


def _emptied(completion: str, reference: Any) -> float:
    words = [] if not isinstance(reference, list) else reference
    score = right(completion, words[0] if words else reference)
    words.clear()
    return score


def _counting(completion: str, reference: Any) -> float:
    next(_calls)
    return right(completion, reference)


HONEST: dict[str, Judge] = {
    "plain": right,
    "counting its calls": _counting,
    "emptying its reference": _emptied,
    "a million for a short text": _any_text,
    "numpy's number": lambda completion, reference: np.float32(right(completion, reference)),
    "a thousand": lambda completion, reference: 1000 * right(completion, reference),
    "a share": lambda completion, reference: Verdict(len(set(completion) & set(str(reference))) / 9, completion, ""),
}
