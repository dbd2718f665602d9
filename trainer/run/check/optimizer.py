"""Whether the optimizer and the learning rate's schedule can be made as they are asked for: on one parameter."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from evenkeel.trainer.run.check.context import CheckContext, Finding, error
from evenkeel.trainer.run.check.plan import optimizer_steps

_UNKNOWN_STEPS = 100
"""Taken where the plan does not hold: what is asked for is then checked by itself."""


def optimizer_findings(context: CheckContext) -> Iterator[Finding]:
    """What torch, or transformers, says against ``optim``, ``optim_args``, the rate's schedule and its arguments."""
    import torch

    if context.args is None or context.argument("deepspeed"):  # DeepSpeed makes its own
        return
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    written = ", ".join(_said(context, name) for name in ("optim_args", "optim") if name in context.config.trl)
    try:
        optimizer = _optimizer(context.args, parameter, context.skeleton)
    except ImportError:  # the package is a finding of its own
        return
    except Exception as fault:  # noqa: BLE001 — each optimizer raises its own
        written = written or _said(context, "optim")
        yield error(
            "trl", "optimizer-refused", f"No optimizer can be made of {written}: {_first(fault)} Change what it names."
        )
        return
    if context.args.optim_args:
        yield from _without_effect(context)
    names = ("lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps")
    written = ", ".join(_said(context, name) for name in names if name in context.config.trl)
    try:
        rates = _rates(context.args, optimizer, optimizer_steps(context) or _UNKNOWN_STEPS)
    except Exception as fault:  # noqa: BLE001 — each schedule raises its own
        yield error(
            "trl",
            "schedule-refused",
            f"No schedule of the learning rate can be made of {written}: {_first(fault)} {_NEEDS}",
        )
        return
    if not all(math.isfinite(rate) and rate >= 0 for rate in rates):
        yield error(
            "trl",
            "impossible-learning-rate",
            f"The schedule of {written} gives learning rates of {min(rates):g} to {max(rates):g}.",
        )


_NEEDS = (
    "What a type needs stands under lr_scheduler_kwargs: of cosine_with_min_lr {min_lr_rate: 0.1}; constant needs "
    "nothing."
)


_TRL_ARGUMENTS = {
    "lr": "trl.learning_rate",
    "betas": "trl.adam_beta1 and trl.adam_beta2",
    "beta1": "trl.adam_beta1",
    "beta2": "trl.adam_beta2",
    "eps": "trl.adam_epsilon",
    "weight_decay": "trl.weight_decay",
}
"""Key of ``optim_args`` → the argument that sets it for an optimizer that does not read the key."""


class _Arguments(dict[str, str]):
    """``optim_args``, noting in ``read`` the keys that an optimizer asks for."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.read: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        self.read[str(key)] = None
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read[key] = None
        return super().get(key, default)

    def pop(self, key: str, default: Any = None) -> Any:
        return self.get(key, default)


def _without_effect(context: CheckContext) -> Iterator[Finding]:
    """Keys of ``optim_args`` that transformers takes and does not use, which it does in silence."""
    from transformers.trainer_optimizer import _OPTIMIZER_HANDLERS, OptimizerContext, _parse_optim_args

    args = context.args
    given = _Arguments(_parse_optim_args(args.optim_args))
    adam = {"betas": (args.adam_beta1, args.adam_beta2), "eps": args.adam_epsilon}
    asked = OptimizerContext(args, context.skeleton, {"lr": args.learning_rate}, adam, given)
    _, options = _OPTIMIZER_HANDLERS[args.optim](asked)
    given.read.pop("weight_decay", None)  # transformers gives each group of parameters that of trl.weight_decay
    if unread := [key for key, value in given.items() if key not in given.read and options.get(key) != value]:
        takes = f"takes {', '.join(given.read)}" if given.read else "takes no arguments"
        instead = [f"{_TRL_ARGUMENTS[key]} for {key}" for key in unread if key in _TRL_ARGUMENTS]
        advice = f"Write {', '.join(instead)}." if instead else "Delete it."
        yield error(
            "trl",
            "unread-optimizer-arguments",
            f"{_said(context, 'optim_args')}: {', '.join(unread)} would have no effect, because "
            f"{args.optim.value} {takes} there. {advice}",
        )


def _optimizer(args: Any, parameter: Any, model: Any) -> Any:
    """As transformers makes it, and one step of it."""
    import torch
    from transformers import Trainer

    kind, options = Trainer.get_optimizer_cls_and_kwargs(args, model)
    if any(name in options for name in ("optimizer_dict", "model", "params")):  # of a whole model
        return torch.optim.SGD([parameter], lr=args.learning_rate)
    optimizer = kind([parameter], **options)
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def _rates(args: Any, optimizer: Any, steps: int) -> list[float]:
    """The first and the last learning rates of a run of ``steps``."""
    from transformers import get_scheduler

    schedule = get_scheduler(
        args.lr_scheduler_type,
        optimizer=optimizer,
        num_warmup_steps=args.get_warmup_steps(steps),
        num_training_steps=steps,
        scheduler_specific_kwargs=args.lr_scheduler_kwargs,
    )
    if not hasattr(schedule, "get_last_lr") or not hasattr(schedule, "lr_lambdas"):
        return [args.learning_rate]
    bases = schedule.base_lrs
    return [
        float(base * rate(step))
        for base, rate in zip(bases, schedule.lr_lambdas, strict=True)
        for step in {0, 1, steps // 2, steps - 1, steps}
    ]


def _said(context: CheckContext, name: str) -> str:
    value = context.argument(name)
    return f"trl.{name} = {getattr(value, 'value', value)!r}"


def _first(fault: Exception) -> str:
    return f"{type(fault).__name__}: {(str(fault).strip() or 'without a message').splitlines()[0].rstrip('.')}."
