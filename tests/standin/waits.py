"""Where the host waits for the device while a trainer trains, by phase of the step."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.loss import DeferredChecks
from evenkeel.trainer.step.microbatches import Microbatches, PlannedCut
from tests.paths import ROOT

OURS = str(ROOT / "trainer")
OTHERS = ("trl", "transformers", "accelerate", "peft")
MICROBATCH = "micro-batch"

PHASES: dict[tuple[type, str], str] = {
    (GRPOTrainer, "training_step"): MICROBATCH,
    (DeferredChecks, "raise_first"): "optimizer step",
    (GRPOTrainer, "_prepare_inputs"): "cut",
    (PlannedCut, "cut"): "planned cut",
    (Microbatches, "_verified"): "comparison of cuts",
    (GRPOTrainer, "_generate_and_score_completions"): "rollout batch",
    (GRPOTrainer, "_generate"): "generation",
    (GRPOTrainer, "_calculate_rewards"): "rewards",
    (GRPOTrainer, "_maybe_log_save_evaluate"): "log line",
    (GRPOTrainer, "log"): "log line",
    (GRPOTrainer, "evaluate"): "evaluation",
    (GRPOTrainer, "_save_checkpoint"): "checkpoint",
}
"""Method → the phase that lasts while it runs. Of phases inside another the innermost is in force."""


@dataclass
class Waits:
    """What was found: (phase, place) → how often; and phase → how often it was entered.

    A place is ``file:function`` of ours, or ``package/file:function`` of another package where ours only calls it; line
    numbers would change with every edit.
    """

    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    entered: Counter[str] = field(default_factory=Counter)
    _phases: list[str] = field(default_factory=lambda: ["elsewhere"])

    def __call__(self, kind: str) -> None:
        """Note one; called by the device."""
        self.found[self._phases[-1], _place()] += 1

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Inside, waits are of this phase."""
        if self._phases[-1] != name:  # and not an override that calls what it overrides
            self.entered[name] += 1
        self._phases.append(name)
        try:
            yield
        finally:
            self._phases.pop()

    def per_visit(self, *, ours: bool) -> dict[tuple[str, str], float]:
        """Waits each time that the phase is entered; of this project's own code, or of the packages it calls."""
        return {
            (phase, place): count / max(1, self.entered[phase])
            for (phase, place), count in self.found.items()
            if ("/" not in place) == ours and phase != "elsewhere"
        }


@contextmanager
def counted(native: Any) -> Iterator[Waits]:
    """Inside, each wait is noted.

    Args:
        native: the installed device.
    """
    waits = Waits()
    with ExitStack() as stack:
        for owner, name, phase in _overridden():
            stack.enter_context(patch.object(owner, name, _in_phase(waits, phase, getattr(owner, name))))
        native.on_host_wait(waits)
        try:
            yield waits
        finally:
            native.on_host_wait(None)


def _overridden() -> Iterator[tuple[type, str, str]]:
    """Each method of `PHASES`, and where ours overrides TRL's that one too."""
    for (owner, name), phase in PHASES.items():
        for each in {owner, RLVRTrainer} if owner is GRPOTrainer else {owner}:
            if name in vars(each) or each is owner:
                yield each, name, phase


def _in_phase(waits: Waits, phase: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*positional: Any, **keywords: Any) -> Any:
        with waits.phase(phase):
            return method(*positional, **keywords)

    return wrapped


def _place() -> str:
    """The innermost frame of ours or of the packages that ours calls; torch's own frames are passed over."""
    frame = sys._getframe()
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if path.startswith(OURS):
            return f"{Path(path).name}:{name}"
        package, _, rest = path.rpartition("/site-packages/")[2].partition("/")
        if package in OTHERS:
            return f"{package}/{Path(rest).name}:{name}"
        frame = frame.f_back
    return "?/"


def largest(cases: Mapping[str, Waits], *, ours: bool) -> dict[tuple[str, str], tuple[float, str]]:
    """(phase, place) → the most waits each time the phase is entered, in any case, and that case."""
    most: dict[tuple[str, str], tuple[float, str]] = {}
    for name, waits in cases.items():
        for key, count in waits.per_visit(ours=ours).items():
            most[key] = max(most.get(key, (0.0, "")), (count, name), key=lambda pair: pair[0])
    return dict(sorted(most.items()))
