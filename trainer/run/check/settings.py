"""Values that are allowed and probably wrong, and what is asked for after the end of the run."""

import os
from collections.abc import Iterator

from evenkeel.trainer.algorithms.trial import coefficient_under_noise, heaviest_token_weight
from evenkeel.trainer.run.check.context import CheckContext, Finding, error, note, warning
from evenkeel.trainer.run.check.plan import optimizer_steps, plan_of
from evenkeel.trainer.run.config.rules import RULES, Given, rules_broken
from evenkeel.trainer.step.options import Schedule

_LARGEST_LEARNING_RATE = 0.1
_ROUNDING = 0.01
"""Of a token's log-probability between two passes in half precision, a standard deviation; assumed."""


def setting_findings(context: CheckContext) -> Iterator[Finding]:
    """Learning rate, clip, warm-up, checkpoints, evaluations."""
    rate, epsilon = context.argument("learning_rate"), context.argument("epsilon")
    if rate >= _LARGEST_LEARNING_RATE:
        yield warning(
            "trl",
            "large-learning-rate",
            f"trl.learning_rate = {rate:g}: Adam moves every weight by about so much in its first step, which no "
            "policy survives. Published runs take 1e-7 to 1e-4.",
        )
    if epsilon >= 1:
        yield warning(
            "trl",
            "large-epsilon",
            f"trl.epsilon = {epsilon:g}: a ratio between {1 - epsilon:g} and {1 + epsilon:g} is never clipped from "
            "below. It is a share, not a percentage: 0.2 is usual.",
        )
    steps = optimizer_steps(context)
    if steps is not None:
        yield from _after_the_end(context, steps)


def rule_findings(context: CheckContext) -> Iterator[Finding]:
    """What has no effect, and what the parts do."""
    weight = None if context.strategies is None else context.strategies.token_weight
    heaviest = 1.0 if weight is None else heaviest_token_weight(weight)
    scale = _coefficient_under_rounding(context)
    given = Given(context.config.model_dump(exclude_unset=True), heaviest, scale)
    warnings = [rule for rule in RULES if rule.severity == "warn"]
    for rule, what, instead in rules_broken(warnings, given):
        yield warning(rule.settings[0].split(".")[0], rule.code, f"{what} {instead}")


def _coefficient_under_rounding(context: CheckContext) -> float:
    """1 where nothing rounds to half precision, where there is no ratio, and where nothing is known."""
    args, coefficient = context.args, None if context.strategies is None else context.strategies.coefficient
    if args is None or coefficient is None or not args.max_completion_length:
        return 1.0
    on_policy = Schedule.of(args, context.num_passes).is_on_policy and not context.config.speed.staleness
    if on_policy or not context.is_half_precision:
        return 1.0
    return coefficient_under_noise(coefficient, args.max_completion_length, _ROUNDING)


def _after_the_end(context: CheckContext, steps: int) -> Iterator[Finding]:
    warmup, every = context.argument("warmup_steps"), context.config.evaluation.every_steps
    if warmup >= max(steps, 1):
        yield warning(
            "trl",
            "warmup-beyond-end",
            f"trl.warmup_steps = {warmup:g}, and the run has {steps} optimizer steps: it ends before it reaches its "
            f"learning rate. Write warmup_steps: {steps // 10}.",
        )
    if every is not None and every > steps:
        yield warning(
            "evaluation",
            "evaluation-beyond-end",
            f"evaluation.every_steps = {every}, and the run has {steps} optimizer steps: nothing is evaluated between "
            "beginning and end. Write a smaller number, or delete it.",
        )
    if context.argument("save_strategy") == "steps" and context.argument("save_steps") > steps:
        yield note(
            "trl",
            "checkpoint-beyond-end",
            f"trl.save_steps = {context.argument('save_steps'):g}, and the run has {steps} optimizer steps: there is "
            "no checkpoint before the end, except where it is stopped on request.",
        )
    staleness, plan = context.config.speed.staleness, plan_of(context)
    if plan is not None and plan.rollouts is not None and staleness >= max(plan.rollouts, 1):
        yield warning(
            "speed",
            "staleness-beyond-end",
            f"speed.staleness = {staleness}, and the run has {plan.rollouts} rollout batches: the policy that it "
            "starts with writes all of them, and a larger number changes nothing. Write a smaller one, or more steps.",
        )


def logging_findings(context: CheckContext) -> Iterator[Finding]:
    """W&B and the hub without what they need."""
    if "wandb" in context.config.logging.report_to and (mode := os.environ.get("WANDB_MODE")) != "disabled":
        import wandb

        if mode == "online" and not wandb.api.api_key:
            what = "WANDB_MODE is online, but no W&B key is set."
            yield error("logging", "no-wandb-key", f"{what} Run `wandb login`, set WANDB_API_KEY, or unset WANDB_MODE.")
        yield from _of_wandb()
    if context.argument("push_to_hub"):
        from huggingface_hub import get_token

        if get_token() is None:
            yield error(
                "trl",
                "no-hub-token",
                "trl.push_to_hub is true, but no token of the hub is set. Set HF_TOKEN, run `hf auth login`, or leave "
                "push_to_hub out.",
            )


def _of_wandb() -> Iterator[Finding]:
    """What W&B itself says against its variables: mode, project, run id, tags."""
    import wandb

    for name, value in os.environ.items():
        try:
            if name.startswith("WANDB_") and value:
                wandb.Settings().update_from_env_vars({name: value})
        except Exception as fault:  # noqa: BLE001 — of its own and of pydantic's kinds
            what = f"{name} = {value!r} is not accepted by W&B: {_reason(fault)} Write another."
            yield error("logging", "refused-by-wandb", what)


def _reason(fault: Exception) -> str:
    """The sentence of a library's error: of pydantic's, which names the setting first, the third line."""
    lines = [line.strip() for line in str(fault).strip().splitlines()]
    chosen = lines[2] if len(lines) > 2 and "validation error" in lines[0] else lines[0]
    return chosen.partition(" [type=")[0].rstrip(".") + "."
