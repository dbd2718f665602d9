"""Rules on a log. Each reads the log up to now, so running and finished runs are treated alike.

A *line* is one training line of the log: with ``logging_steps`` 1 an optimizer step. A rule is a function of the `Log`
that returns its finding as a sentence, or ``None``. Why each threshold is where it is: docs/doctor.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from evenkeel.errors import Severity
from evenkeel.trainer.lab.doctor.log import NAMES, Log

_NOT_TRLS = ("groups/", "actor/", "critic/")
"""How names begin that a run of ours or verl logs, and TRL does not."""
WINDOW = 5
"""Lines over which a mean or a median is taken: a median of five lets two outliers pass."""


@dataclass(frozen=True)
class Symptom:
    """A rule on a log: a sign that something is wrong.

    Attributes:
        change: what to change, a sentence.
        settings: those to change, by their keys in a run file; keys under ``trl.`` are TRL's.
    """

    name: str
    severity: Severity
    change: str
    settings: str
    found: Callable[[Log], str | None]


@dataclass(frozen=True)
class Observation:
    """The finding of a rule, with the first and the last step at which it held; ``text`` is that of the last."""

    severity: Severity
    rule: str
    first_step: int
    last_step: int
    text: str
    change: str
    settings: list[str]

    @property
    def advice(self) -> str:
        """``change``, then the settings by name."""
        kind = "Settings" if any("." in name for name in self.settings) else "Arguments of GRPOConfig"
        return f"{self.change} {kind}: {', '.join(self.settings)}."


class Examination:
    """The rules, applied at every line of a log. Findings in a log of TRL's name its arguments, without ``trl.``."""

    def __init__(self) -> None:
        self.log = Log()
        self.findings: dict[str, Observation] = {}
        self._is_trls = True

    def add(self, step: int, line: Mapping[str, Any]) -> list[Observation]:
        """Add a line; returns the findings of rules that had none before."""
        self.log.add(line)
        self._is_trls &= not any(key.startswith(_NOT_TRLS) for key in line)
        found = {rule: text for rule in SYMPTOMS if (text := rule.found(self.log)) is not None}
        before = {*self.findings}
        for rule, text in found.items():
            first = self.findings[rule.name].first_step if rule.name in before else step
            settings = rule.settings.split(", ")
            if self._is_trls:
                settings = [name.removeprefix("trl.") for name in settings if name.startswith("trl.")]
            advised = rule.change, settings
            self.findings[rule.name] = Observation(rule.severity, rule.name, first, step, text, *advised)
        return [self.findings[rule.name] for rule in found if rule.name not in before]

    def add_all(self, lines: Iterable[tuple[int, Mapping[str, Any]]]) -> "Examination":
        """Add all lines of a log."""
        for step, line in lines:
            self.add(step, line)
        return self

    @property
    def not_logged(self) -> list[str]:
        """Metrics that rules read and the log lacks."""
        return [name for name in (*NAMES, "held_out") if not self.log.values.get(name)]


SYMPTOMS: list[Symptom] = []
"""All rules, in the order in which they are applied and listed."""


def symptom(severity: Severity, **fields: Any) -> Callable[[Callable[[Log], str | None]], Any]:
    """Decorator that adds a function to `SYMPTOMS`; the arguments are the fields of `Symptom`."""

    def listed(found: Callable[[Log], str | None]) -> Callable[[Log], str | None]:
        SYMPTOMS.append(Symptom(found.__name__.replace("_", "-"), severity, **fields, found=found))
        return found

    return listed


@symptom(
    "error",
    change="Write a learning rate above 0, or a longer schedule.",
    settings="trl.learning_rate, trl.lr_scheduler_type, trl.warmup_steps, trl.max_steps",
)
def learning_rate_zero(log: Log) -> str | None:
    rates = log.last("learning_rate", 3)
    return f"The learning rate was 0 in {len(rates)} lines in a row." if rates and not any(rates) else None


@symptom(
    "error",
    change="Train in bfloat16, clip the gradient, lower the learning rate.",
    settings="stopping.skip_faults, trl.max_grad_norm, trl.learning_rate, trl.bf16",
)
def not_finite(log: Log) -> str | None:
    norm, loss = ((log.last(name, 1) or [0.0])[0] for name in ("gradient_norm", "loss"))
    finite = math.isfinite(norm) and math.isfinite(loss)
    return None if finite else f"The gradient norm is {norm}, the loss {loss}."


@symptom(
    "error",
    change="Look at equal rewards, masks, token weights and clipping.",
    settings="algorithm.prompt_sampler, trl.num_generations, trl.epsilon, trl.mask_truncated_completions",
)
def nothing_trained(log: Log) -> str | None:
    norms = log.last("gradient_norm", WINDOW)
    if not norms or any(norms):
        return None
    reward = mean(log.last("reward", WINDOW) or [math.nan])
    return f"The gradient was 0 in {WINDOW} lines in a row (mean reward {reward:.3g})."


@symptom(
    "warning",
    change="Generate more completions a prompt, or choose prompts that are solved sometimes.",
    settings="algorithm.prompt_sampler: dynamic, trl.num_generations, trl.temperature",
)
def dead_groups(log: Log) -> str | None:
    shares, rewards = log.last("dead_groups", WINDOW), log.last("reward", WINDOW)
    if not shares or mean(shares) < 0.75:
        return None
    return f"{mean(shares):.0%} of the groups had equal rewards (mean reward {mean(rewards or [math.nan]):.3g})."


@symptom(
    "warning",
    change="Allow longer completions, or mask those that were truncated; check that the policy ends its text.",
    settings="trl.max_completion_length, trl.mask_truncated_completions",
)
def truncated(log: Log) -> str | None:
    shares = log.last("truncated", WINDOW)
    return f"{mean(shares):.0%} of the completions were truncated." if shares and mean(shares) >= 0.5 else None


@symptom(
    "warning",
    change="Raise the upper clip, weight down the tokens that spend entropy, or sample warmer.",
    settings="algorithm.token_weight: clip_cov, trl.epsilon_high, trl.entropy_coef, trl.temperature, trl.learning_rate",
)
def entropy_collapse(log: Log) -> str | None:
    first, last = log.first("entropy", 2 * WINDOW)[:WINDOW], log.last("entropy", WINDOW)
    if not first or median(first) <= 0 or median(last) >= 0.1 * median(first):
        return None
    return f"The entropy fell from {median(first):.3g} to {median(last):.3g} nats a token."


@symptom(
    "warning",
    change="Read the completions that earn the reward; add prompts, tighten the verifier, stay near the reference.",
    settings="rewards, data.train, evaluation.every_steps, trl.beta, trl.num_train_epochs, trl.reward_weights",
)
def held_out_stands_still(log: Log) -> str | None:
    held_out = log.values.get("held_out", [])
    first, last = log.first("reward", 2 * WINDOW)[:WINDOW], log.last("reward", WINDOW)
    if len(held_out) < 3 or not first:
        return None
    best, rise = max(held_out[-2:]), (mean(last) - mean(first)) / _reward_scale(first + last)
    if rise < 0.2 or best - held_out[0] >= rise / 5:
        return None
    return (
        f"The training reward rose from {mean(first):.3g} to {mean(last):.3g}, the held-out accuracy from "
        f"{held_out[0]:.3g} to {best:.3g} at most."
    )


@symptom(
    "warning",
    change="Lower the learning rate, raise beta, or synchronize the reference.",
    settings="trl.beta, trl.learning_rate, trl.sync_ref_model, trl.max_grad_norm",
)
def kl_runaway(log: Log) -> str | None:
    values = log.last("kl", WINDOW)
    if not values or median(values) < 1:
        return None
    return f"The policy is {median(values):.3g} nats a token away from its reference."


@symptom(
    "warning",
    change="Use a loss that does not divide by each length; read the long answers.",
    settings="algorithm.advantage: dr_grpo, trl.loss_type, trl.mask_truncated_completions, trl.max_completion_length",
)
def lengths_drifting(log: Log) -> str | None:
    lengths, rewards = log.first("length", 2 * WINDOW)[:WINDOW], log.first("reward", 2 * WINDOW)[:WINDOW]
    if not (lengths and rewards) or median(lengths) <= 0:
        return None
    last, newest = median(log.last("length", WINDOW)), log.last("reward", WINDOW)
    rise = (mean(newest) - mean(rewards)) / _reward_scale(rewards + newest)
    if 0.5 < last / median(lengths) < 2 or rise >= 0.05:
        return None
    return (
        f"The mean length went from {median(lengths):.4g} to {last:.4g} tokens while the reward went from "
        f"{mean(rewards):.3g} to {mean(newest):.3g}."
    )


def _reward_scale(rewards: list[float]) -> float:
    """From the worst reward to the best: 1 for rewards in [0, 1], 2 where any mean is negative, else the largest."""
    return 2.0 * max(1.0, *map(abs, rewards)) if min(rewards) < 0 else max(1.0, *rewards)
