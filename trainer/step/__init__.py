"""One optimizer step on TRL, whose private methods it replaces."""

import inspect
import re
import warnings
from importlib.metadata import version

from packaging.specifiers import SpecifierSet

TESTED = SpecifierSet(">=1.16,<1.17")
"""Releases of TRL that the tests have passed with, parity among them."""
METHODS = """
train(resume_from_checkpoint) training_step(model,inputs,num_items_in_batch) _prepare_inputs(generation_batch)
_get_train_sampler(dataset) _generate_and_score_completions(inputs) _generate(prompts) _tokenize_prompts(prompts)
_generate_single_turn(prompt_ids,images,multimodal_fields,num_generations) _get_tool_suffix_ids(tool_messages)
_tool_call_loop(prompts,prompt_ids,completion_ids,completions) _compute_loss(model,inputs) log(logs,start_time)
_get_per_token_logps_and_entropies(model,input_ids,attention_mask,logits_to_keep,batch_size,compute_entropy)
_calculate_rewards(inputs,prompts,completions,completion_ids_list) _get_grad_norm(model,grad_norm)
_maybe_log_save_evaluate(tr_loss,grad_norm,model,trial) evaluate(eval_dataset) create_model_card(model_name)
prediction_step(model,inputs,prediction_loss_only) evaluation_loop(dataloader,description,prediction_loss_only)
_save_checkpoint(model,trial) _load_optimizer_and_scheduler(checkpoint) _issue_warnings_after_load(load_result)
"""
"""Methods of `GRPOTrainer` that `RLVRTrainer` replaces or calls, with the arguments by which it does."""


def check_release(installed: str) -> None:
    """Warn of a TRL that was not tested: a method that is replaced may mean another thing there."""
    if not TESTED.contains(installed, prereleases=True):
        warnings.warn(
            f"TRL {installed} has not been tested, so what is trained may be another thing: pip install 'trl{TESTED}'.",
            stacklevel=2,
        )


def check_methods(trainer: type) -> None:
    """Raise an ImportError where ``trainer``, TRL's, lacks one of `METHODS` or takes other arguments there."""
    for name, arguments in re.findall(r"(\w+)\((.*?)\)", METHODS):
        there = [*inspect.signature(getattr(trainer, name, lambda _: None)).parameters][1:]
        if there[: len(needed := arguments.split(","))] != needed:
            raise ImportError(
                f"TRL {version('trl')} has {name}({', '.join(there)}), where the training step needs "
                f"{name}({', '.join(needed)}): pip install 'trl{TESTED}'."
            )


check_release(version("trl"))
