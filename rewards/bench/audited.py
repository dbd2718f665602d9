"""The audited reward function in a worker process, called with one case or with a batch.

Its parent never imports it: a module that hangs or ends its process costs only a worker. Its output is discarded.
"""

import inspect
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenkeel.rewards.registry import Kind
from evenkeel.rewards.user_verifiers.trl_function import ReturnError, TRLFunction, rewards_of
from evenkeel.rewards.verifier import Verdict, Verifier, as_verdict


class VerlFunction(TRLFunction):
    """A function with verl's signature, called for one completion with the fields of its row."""

    def judge_all(self, completions: Sequence[Any], references: Sequence[Any], token_ids: Any = None) -> list[Verdict]:
        """Score a batch; of a mapping that the function returns ``score`` counts."""
        returned = [*map(self.called, references)]
        scores = (each.get("score", each) if isinstance(each, dict) else each for each in returned)
        return [*map(as_verdict, rewards_of(scores))]


def answers_of(named: str) -> Callable[[dict[str, Any] | None], dict[str, Any]]:
    """The function of that name, wrapped to take and return JSON.

    ``None`` asks how it is called: its ``signature``, and ``any`` (it has **kwargs). Everything else is a call:
    ``completions`` and ``references``, which are rows where the function is not one of our verifiers. The answer holds
    ``rewards`` or ``fault``, and ``seconds``.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    signature, verifier = _loaded(named)

    def called(item: dict[str, Any] | None) -> dict[str, Any]:
        if item is None:
            return {"signature": signature, "any": getattr(verifier, "takes_any", False)}
        rewards: list[float | None] = []
        fault, started = "", time.perf_counter()
        try:
            rewards = [verdict.score for verdict in verifier.judge_all(**item)]
        except ReturnError as error:
            fault = f"{error!s:.200}"
        except BaseException as error:  # noqa: BLE001 — any exception is a finding
            place = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"raised {type(error).__name__}: {error!s:.200} ({Path(place.filename).name}:{place.lineno})"
        return {"rewards": rewards, "fault": fault, "seconds": time.perf_counter() - started}

    return called


def _loaded(named: str) -> tuple[str, Verifier]:
    """Signature and function for ``named``, a verifier's name or ``module:function``."""
    found: Any = Kind("verifier", dict).find(named).target if ":" in named else None
    is_ours = found is None or isinstance(found, Verifier) or (inspect.isclass(found) and issubclass(found, Verifier))
    parameters = [] if is_ours else list(inspect.signature(found).parameters)
    if "solution_str" in parameters:
        return "verl", VerlFunction(found)
    if not is_ours and parameters[:2] != ["completion", "reference"]:
        return "TRL", TRLFunction(found)
    # Most audits are of other functions, and need none of these.
    from evenkeel.rewards.bench.built_in import SPECS
    from evenkeel.rewards.parts import build_verifier

    return "verifier", build_verifier(found or SPECS.get(named, named))
