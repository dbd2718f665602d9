"""Rows judged by a user's verifier, whatever it raises; here, or in a worker process that holds the verifier."""

import base64
import copy
import json
import multiprocessing.spawn
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerPool
from evenkeel.rewards.user_verifiers.traits import traits_of
from evenkeel.rewards.verifier import TokenVerifier, Verdict, Verifier, as_verdict

Row = tuple[Any, ...]
"""Completion, reference and, of a `TokenVerifier`, token ids."""

START_SECONDS = 120.0
"""For the imports of a new worker; they are not the batch's time."""


def verdicts_of(verifier: Verifier, rows: Sequence[Row]) -> Iterator[Verdict]:
    """The verdicts of ``rows``, each as soon as it is there. Raises nothing of the verifier's.

    Rows are judged on copies: a reference that is emptied, or token ids that are cut, would be those of the run. They
    are judged together only where the verifier has a ``judge_all`` of its own.
    """
    one_by_one = type(verifier).judge_all in (Verifier.judge_all, TokenVerifier.judge_all)
    for batch in [[row] for row in rows] if one_by_one else [rows]:
        yield from _batch_verdicts(verifier, batch)


def _batch_verdicts(verifier: Verifier, rows: Sequence[Row]) -> list[Verdict]:
    try:
        copies = [tuple(map(copy.deepcopy, row)) for row in rows]
        verdicts = verifier.judge_all(*(list(column) for column in zip(*copies, strict=True)))
        if len(verdicts) != len(rows):
            raise ValueError(f"judge_all returned {len(verdicts)} verdicts for {len(rows)} completions")
        return [as_verdict(verdict) for verdict in verdicts]
    except BaseException as error:  # noqa: BLE001 — also sys.exit; Ctrl-C reaches the trainer's main thread, not this one
        return [Verdict(None, None, f"the verifier failed: {type(error).__name__}: {error}")] * len(rows)


def worker_pool(verifier: Verifier) -> WorkerPool:
    """The pool of one worker that holds ``verifier``; equal verifiers share it. Raises what pickling it raises."""
    pickled, traits, main = pickle.dumps(verifier), traits_of(verifier), {}
    if b"__main__" in pickled:  # the worker imports the script that the verifier stands in
        names = ("init_main_from_name", "init_main_from_path")
        found = multiprocessing.spawn.get_preparation_data("")
        main = {name: str(found[name]) for name in names if name in found}
    return WorkerPool(
        f"{__name__}:judge_with",
        argument=json.dumps({"verifier": base64.b64encode(pickled).decode(), "main": main}),
        cpu_seconds=0,
        wall_seconds=traits.timeout_s,
        memory_bytes=traits.memory_mb << 20,
        workers=1,
        start_seconds=START_SECONDS,
        users=True,
    )


def item_of(rows: Sequence[Row]) -> str:
    """What the worker is sent. Pickled in this direction alone: it trusts the trainer, and the trainer not it."""
    return base64.b64encode(pickle.dumps(list(rows))).decode()


def judge_with(argument: str) -> Callable[[str], Iterator[dict[str, Any]]]:
    """In the worker: the verifier that ``argument`` holds, as a function of `item_of` rows to verdicts for JSON."""
    given = json.loads(argument)
    if given["main"]:
        multiprocessing.spawn.prepare(given["main"])
    verifier = pickle.loads(base64.b64decode(given["verifier"]))
    memory_mb = traits_of(verifier).memory_mb

    def judge(item: str) -> Iterator[dict[str, Any]]:
        for verdict in verdicts_of(verifier, pickle.loads(base64.b64decode(item))):
            if verdict.score is None and verdict.reason.startswith("the verifier failed: MemoryError"):
                reason = f"the verifier failed: the row took more than memory_mb = {memory_mb} of its process"
                yield vars(verdict) | {"reason": reason, "killed": True}
            else:
                yield vars(verdict)

    return judge
