"""One optimizer step on TRL, whose private methods it replaces: a TRL that lacks one of them is refused here."""

import warnings
from importlib.metadata import PackageNotFoundError, requires, version
from pkgutil import resolve_name

from packaging.requirements import Requirement

from evenkeel.errors import Refusal

SEAMS = {
    "trl:GRPOConfig": (),
    "trl:GRPOTrainer": (
        "train",
        "_get_train_sampler",
        "training_step",
        "_prepare_inputs",
        "_generate_and_score_completions",
        "_generate",
        "_generate_single_turn",
        "_tool_call_loop",
        "_get_tool_suffix_ids",
        "_get_per_token_logps_and_entropies",
        "_calculate_rewards",
        "_compute_loss",
        "_get_grad_norm",
        "_maybe_log_save_evaluate",
        "log",
        "evaluate",
        "prediction_step",
        "_save_checkpoint",
        "save_model",
        "_save_optimizer_and_scheduler",
        "_save_rng_state",
        "create_model_card",
        "_issue_warnings_after_load",
        "_load_optimizer_and_scheduler",
    ),
    "trl.chat_template_utils": (
        "add_response_schema",
        "get_training_chat_template",
        "is_chat_template_prefix_preserving",
        "supports_tool_calling",
    ),
    "trl.models.utils": ("disable_gradient_checkpointing",),
    "trl.trainer.utils": (
        "RepeatSampler",
        "_use_triton",
        "add_fused_lm_head",
        "compute_flops_per_token",
        "is_async_callable",
        "split_pixel_values_by_grid",
        "split_tensor_dict",
        "unsplit_pixel_values_by_grid",
    ),
}
"""What of TRL is imported, overridden or replaced: ``module:class`` or module → names in it."""


def check_trl(installed: str, supported: Requirement) -> None:
    """Refuse a TRL that lacks a seam, and warn of another one outside of what is ``supported``; both in one sentence.

    TRL is imported only where its version is outside: reading a run file needs none.
    """
    if supported.specifier.contains(installed, prereleases=True):
        return
    way_out = f"Evenkeel supports {supported}: pip install '{supported}'."
    missing = []
    for place, names in SEAMS.items():
        try:
            found = resolve_name(place)
        except (ImportError, AttributeError):
            missing.append(place)
        else:
            missing += [f"{place}.{name}" for name in names if not hasattr(found, name)]
    if missing:
        lacking = ", ".join(missing).replace(":", ".")
        raise Refusal(f"TRL {installed} has no {lacking}, on which the training step is built; {way_out}", code="trl")
    warnings.warn(
        f"TRL {installed} has not been tested: it has what the training step is built on, but whether that means what "
        f"it did is not known; {way_out}",
        stacklevel=2,
    )


try:
    _required = requires("trl-evenkeel") or ()
except PackageNotFoundError:  # a checkout that is not installed
    _required = ()
for _each in map(Requirement, _required):
    if _each.name == "trl":
        check_trl(version("trl"), _each)
