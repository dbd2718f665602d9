"""The three kinds of strategy, their tables of built-in names, and the contract each part must keep.

A new variant is a function in its file, a test, and one line in a table here.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.algorithms import advantages, token_weights, update_schedules
from trainer.algorithms.registry import Kind, Part, PartError, PartSpec
from trainer.algorithms.update_schedules import UpdateSchedule

PROBE_GROUP_SIZE = 4
PROBE_LENGTH = 6


def _probe_inputs() -> dict[str, Tensor]:
    """Three groups of four responses of up to six tokens: one mixed with an unjudged row, one dead, one mixed."""
    nan = float("nan")
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([6, 3, 4, 5, 2, 6, 6, 1, 3, 3, 5, 6])
    mask = (torch.arange(PROBE_LENGTH) < lengths[:, None]).long()
    return {
        "rewards": torch.tensor([1.0, 0.0, nan, 1.0, 0.7, 0.7, 0.7, 0.7, 0.0, 1.0, 0.0, 0.0]),
        "lengths": lengths,
        "mask": mask,
        "completion_ids": torch.randint(1, 4, mask.shape, generator=generator) * mask,
        "sequence_weights": torch.ones(12),
        "probs": torch.rand(mask.shape, generator=generator),
        "advantages": torch.randn(mask.shape, generator=generator),
    }


def _tried(part: Part, *arguments: object, **inputs: object) -> object:
    try:
        return part(*arguments, **inputs)
    except Exception as error:
        message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise PartError(f"{part.kind} {part.name!r} failed on a tiny example: {message}") from error


def _refuse(part: Part, broken: bool, problem: str, instead: str) -> None:
    if broken:
        raise PartError(f"{part.kind} {part.name!r} breaks its contract: {problem}. {instead}")


def _probe_advantage(part: Part) -> None:
    inputs = _probe_inputs()
    rewards, mask = inputs.pop("rewards"), inputs["mask"]
    result = _tried(part, rewards, PROBE_GROUP_SIZE, **inputs)
    shapes = (tuple(rewards.shape), tuple(mask.shape))
    if not isinstance(result, Tensor) or tuple(result.shape) not in shapes:
        got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise PartError(
            f"{part.kind} {part.name!r} breaks its contract: for {shapes[0][0]} rewards it returned {got}. "
            f"Return a tensor of shape (N,) = {shapes[0]} or (N, T) = {shapes[1]}."
        )
    rows = result if result.dim() == 2 else result[:, None]
    unjudged = rewards.isnan()
    _refuse(
        part,
        bool((rows.isnan().any(1) != unjudged).any()),
        "NaN marks a response that nobody judged, and it must come out as NaN for that response and no other",
        "Use nanmean, and leave NaN rows out of every sum.",
    )
    _refuse(part, not bool(rows[~unjudged].isfinite().all()), "an advantage is infinite", "Guard the division.")
    _refuse(
        part,
        bool((rows[4:8] != 0).any()),
        "a group whose rewards are all 0.7 must get exact zeros, or float noise trains the model",
        "Fill with 0 where trainer.algorithms.advantages.dead_groups(rewards, group_size).",
    )


def _probe_token_weight(part: Part) -> None:
    inputs = _probe_inputs()
    probs = inputs["probs"]
    result = _tried(part, probs, inputs["advantages"], inputs["mask"])
    if not isinstance(result, Tensor) or result.shape != probs.shape:
        got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise PartError(
            f"{part.kind} {part.name!r} breaks its contract: for probs {tuple(probs.shape)} it returned {got}. "
            "Return a tensor of the shape of probs, (B, T)."
        )
    valid = result[inputs["mask"].bool()]
    _refuse(
        part,
        not bool((valid.isfinite() & (valid >= 0)).all()),
        "a weight is negative or not finite, and w < 0 turns the loss's clip to the wrong side",
        "Clamp it at 0, or change the sign of the advantage in an advantage estimator instead.",
    )


def _probe_update_schedule(part: Part) -> None:
    schedule = build_schedule(part)
    inputs = _probe_inputs()
    mask = inputs["mask"].bool()
    try:
        kept = [schedule.select(inputs["probs"], inputs["mask"], index) for index in range(schedule.num_passes)]
        times_trained = torch.stack([keep.long() for keep in kept]).sum(0)
    except Exception as error:
        raise PartError(
            f"{part.kind} {part.name!r} failed on a tiny example: {type(error).__name__}: {error}"
        ) from error
    _refuse(
        part,
        bool((times_trained != mask.long()).any()),
        f"its {schedule.num_passes} passes train some token {int(times_trained.max())} times or a masked one",
        "Let select return, over all passes, every token of the mask exactly once.",
    )


def build_schedule(part: Part) -> UpdateSchedule:
    """The schedule that an update-schedule part makes of its options."""
    schedule = _tried(part)
    num_passes = getattr(schedule, "num_passes", None)
    _refuse(
        part,
        not isinstance(num_passes, int) or num_passes < 1 or not callable(getattr(schedule, "select", None)),
        f"it returned {schedule!r}",
        "Return trainer.algorithms.update_schedules.UpdateSchedule(num_passes, select).",
    )
    return schedule  # type: ignore[return-value]


ADVANTAGES = Kind(
    name="advantage",
    group="evenkeel.advantages",
    arguments=("rewards", "group_size"),
    inputs=frozenset({"lengths", "completion_ids", "mask", "sequence_weights"}),
    builtin={
        "grpo": advantages.grpo,
        "dr_grpo": advantages.dr_grpo,
        "rloo": advantages.rloo,
        "reinforce_pp": advantages.reinforce_pp,
        "exchangeable": advantages.exchangeable,
    },
    probe=_probe_advantage,
)

TOKEN_WEIGHTS = Kind(
    name="token_weight",
    group="evenkeel.token_weights",
    arguments=("probs", "advantages", "mask"),
    inputs=frozenset(),
    builtin={"uniform": token_weights.uniform, "adv_reweight": token_weights.adv_reweight},
    probe=_probe_token_weight,
)

UPDATE_SCHEDULES = Kind(
    name="update_schedule",
    group="evenkeel.update_schedules",
    arguments=(),
    inputs=frozenset(),
    builtin={"single_pass": update_schedules.single_pass, "lopti": update_schedules.lopti},
    probe=_probe_update_schedule,
)


@dataclass(frozen=True)
class Strategies:
    """The three parts of a run, built and tried, and the schedule that the third one makes."""

    advantage: Part
    token_weight: Part
    update_schedule: Part
    schedule: UpdateSchedule


def build_strategies(
    advantage: PartSpec = "grpo", token_weight: PartSpec = "uniform", update_schedule: PartSpec = "single_pass"
) -> Strategies:
    """The parts that three specifications name.

    Raises:
        PartError: one cannot be found, built or used.
    """
    part = UPDATE_SCHEDULES.build(update_schedule)
    return Strategies(ADVANTAGES.build(advantage), TOKEN_WEIGHTS.build(token_weight), part, build_schedule(part))
