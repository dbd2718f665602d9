"""Where planned micro-batches give the same gradient, and how far they may go; each rule with its reason."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trainer.algorithms.strategies import Strategies
from trainer.algorithms.trial import separable

if TYPE_CHECKING:
    from trl import GRPOConfig

_FEW_TOKENS = 3  # of the six of the tiny example
_LENGTH_DEPENDENT = ("dynamic", "longrope")


def plan_problems(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    """Why micro-batches cannot be cut anew under these settings; nothing where they can."""
    if args.top_entropy_quantile < 1.0:
        yield (
            f"top_entropy_quantile = {args.top_entropy_quantile:g} takes its threshold from the tokens of each "
            "micro-batch, so another cut would train other tokens"
        )
    if args.entropy_coef != 0.0 or args.use_adaptive_entropy:
        yield (
            "an entropy bonus (entropy_coef, use_adaptive_entropy) is a mean over the tokens of each micro-batch, all "
            "rows included, so another cut would weigh them differently"
        )
    if args.loss_type == "bnpo" and args.beta != 0.0:
        yield (
            f"loss_type 'bnpo' with beta = {args.beta:g} divides the KL term too by the tokens of each micro-batch, "
            "which an advantage cannot make up for"
        )
    size = _unit(args, strategies)
    for part in (strategies.token_weight, strategies.coefficient):
        if part is not None and part.traits.draws_at_random:
            yield f"{part.kind} {part.name!r} draws at random, so another cut would draw otherwise"
        elif part is not None and (part.traits.depends_on_the_cut or not separable(part, size)):
            beside = "a row" if size == 1 else "a group"
            yield (
                f"{part.kind} {part.name!r} changes with what lies beside {beside} in its micro-batch, so another cut "
                "would weigh tokens differently"
            )


def model_problems(trainer: Any) -> Iterator[str]:
    """The same for what only the loaded model says."""
    if trainer.aux_loss_enabled:
        yield "the router loss of a Mixture-of-Experts model is a mean over the tokens of each micro-batch"
    if trainer._is_vlm:
        yield "images are not cut with their rows"
    if _rope_type(trainer) in _LENGTH_DEPENDENT:
        yield f"rope type {_rope_type(trainer)!r} turns positions by the length of the padded batch"


def positions_are_relative(trainer: Any) -> bool:
    """Whether padding on the left may be cut without changing what the model answers: rotary positions."""
    return _rope_type(trainer) is not None


def cuts_passes(args: "GRPOConfig", strategies: Strategies) -> bool:
    """Whether a row may end after the last token of the pass: nothing in its loss looks at the tokens behind."""
    parts = [part for part in (strategies.token_weight, strategies.coefficient) if part is not None]
    return (
        strategies.schedule.num_passes > 1
        and args.importance_sampling_level == "token"
        and args.loss_type != "vespo"
        and args.off_policy_mask_threshold is None
        and all(separable(part, _unit(args, strategies), _FEW_TOKENS) for part in parts)
    )


def comparisons_due(verify_steps: int, step: int, max_steps: int) -> int:
    """How many optimizer steps are to be compared up to ``step``, that one included: a function of the step alone.

    The first ``verify_steps``, and where that is above 0 those at a quarter, half and three quarters of the run and the
    last one: a part may begin to look at its whole micro-batch late.
    """
    later = {max_steps // 4, max_steps // 2, 3 * max_steps // 4, max_steps - 1} if verify_steps > 0 else set()
    return verify_steps + sum(0 < each <= step for each in later)


def _unit(args: "GRPOConfig", strategies: Strategies) -> int:
    """Rows that stay together, as the tiny example has them: a row or one of its groups."""
    from trainer.algorithms.trial import GROUP_SIZE

    return GROUP_SIZE if strategies.keep_groups == "forward" else 1


def _rope_type(trainer: Any) -> str | None:
    config = trainer.model.config.get_text_config()
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return None
    kinds = parameters if "rope_type" in parameters else next(iter(parameters.values()), {})
    return kinds.get("rope_type") if isinstance(kinds, dict) else None
