"""The state of strategies that have one: saved with every checkpoint, the same on all ranks, part of exact resume."""

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from rewards.registry import Refusal
from trainer.algorithms.registry import Strategy

FILE = "strategies.pt"


class StrategyStateError(Refusal):
    """A strategy's state that cannot be saved or restored."""


def agreed_states(strategies: Iterable[Strategy]) -> dict[str, Any]:
    """The states of those that have one, by kind, the same on all ranks. Called on all ranks, which raise alike.

    Raises:
        StrategyStateError: ranks hold different states, of which one checkpoint can keep only one; or a strategy fails
            to give its state on one of them.
    """
    stateful = [part for part in strategies if part.has_state]
    if not stateful:
        return {}
    states: dict[str, Any] = {}
    digest, failure, cause = "", "", None
    try:
        for part in stateful:
            failure = f"{part.kind} {part.name!r}"
            states[part.kind] = _on_cpu(part.function.state_dict())  # type: ignore[attr-defined]
        digest, failure = _digest(states), ""
    except Exception as error:  # noqa: BLE001 the other ranks wait for what this one has to say
        failure, cause = f"{failure}: {type(error).__name__}: {str(error)[:300]}", error
    found = gather_object([(digest, failure)])
    for rank, (_, failed) in enumerate(found):
        if failed:
            raise StrategyStateError(
                f"No checkpoint was written: on rank {rank} of {len(found)} the state cannot be had of {failed}. Let "
                "state_dict return tensors, numbers, texts, lists and dictionaries, on every rank."
            ) from cause
    if len(set(found)) > 1:
        raise StrategyStateError(
            f"The state of {' and '.join(states)} differs between processes, so no checkpoint can restore it. Compute "
            "it from what all processes see: an advantage estimator is given the whole rollout batch, a token weight "
            "or coefficient only its own rows."
        )
    return states


def write_states(states: dict[str, Any], folder: Path) -> None:
    """Write what `agreed_states` gave into ``folder``/strategies.pt; nothing where no strategy has a state."""
    if states:
        torch.save(states, folder / FILE)


def load_state(strategies: Iterable[Strategy], folder: Path) -> None:
    """Restore what `write_states` wrote; nothing where no strategy has a state.

    Raises:
        StrategyStateError: the checkpoint holds no state for a strategy that has one.
    """
    stateful = [part for part in strategies if part.has_state]
    if not stateful:
        return
    path = folder / FILE
    states: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True) if path.exists() else {}
    for part in stateful:
        if part.kind not in states:
            raise StrategyStateError(
                f"{folder} holds no state of {part.kind} {part.name!r}, so training would go on as if it had seen "
                "nothing. Resume from a checkpoint of a run with this strategy, or start a new run."
            )
        part.function.load_state_dict(states[part.kind])  # type: ignore[attr-defined]


def _on_cpu(state: Any) -> Any:
    """``state`` with its tensors on the CPU: on which device each rank computed them is no part of it."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu()
    if isinstance(state, dict):
        return {key: _on_cpu(value) for key, value in state.items()}
    return [_on_cpu(value) for value in state] if isinstance(state, list) else state


def _digest(states: dict[str, Any]) -> str:
    buffer = io.BytesIO()
    torch.save(states, buffer)
    return hashlib.sha256(buffer.getvalue()).hexdigest()
