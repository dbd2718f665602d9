"""Rewards and strategies: misspelt, without effect, or not exact together."""

from tests.trainer.run.check.mistakes.mistake import mistake

FORM = "{verifier: {name: soft_overlong, max_tokens: 8, buffer_tokens: 2}}"

REWARDS = [
    mistake("an unknown verifier", "unknown-name", "rewards.0.verifier=exact_mach", says="exact_match?"),
    mistake(
        "an unknown option",
        "unknown-option",
        "rewards.0.verifier={name: exact_match, case: false}",
        says="case_sensitive",
    ),
    mistake("a module that is not there", "failed-import", "rewards.0.verifier=my_parts:no_such"),
    mistake("a module with a mistake in it", "failed-import", "rewards.0.verifier=broken_parts:judge"),
    mistake("the only reward weighs nothing", "all-weights-zero", "rewards.0.weight=0.0", says="weight: 0"),
    mistake(
        "the only reward is a penalty",
        "no-positive-weight",
        "rewards.0.weight=-1.0",
        severity="warning",
        says="weight = -1",
    ),
    mistake("two rewards of one name", "label-twice", "rewards=[{verifier: exact_match}, {verifier: exact_match}]"),
    mistake("a verifier for other data", "unusable-reference", "rewards.0.verifier=countdown"),
    mistake(
        "form alone is rewarded",
        "no-reward-reads-reference",
        f"rewards=[{FORM}]",
        severity="warning",
    ),
    mistake(
        "form decides what is right",
        "form-judged-first",
        f"rewards=[{FORM}, {{verifier: exact_match}}]",
        severity="warning",
    ),
    mistake("an unknown estimator", "unknown-name", "algorithm.advantage=grop", says="grpo?"),
    mistake("an unknown prompt sampler", "unknown-name", "algorithm.prompt_sampler=dynamc", says="dynamic?"),
    mistake(
        "an unknown option of a weight",
        "unknown-option",
        "algorithm.token_weight={name: adv_reweight, alpah: 0.3}",
        says="alpha?",
    ),
    mistake(
        "a coefficient under the clipped loss", "coefficient", "algorithm.coefficient=topr", says="loss_type: cispo"
    ),
    mistake(
        "Lopti with iterations",
        "owned-settings",
        "algorithm.update_schedule=lopti",
        "trl.num_iterations=2",
        says="num_iterations",
    ),
    mistake(
        "Lopti with KL in the wrong loss",
        "passes",
        "algorithm.update_schedule=lopti",
        "trl.beta=0.1",
        "trl.loss_type=grpo",
        says="beta: 0.0",
    ),
    mistake(
        "a token weight at the level of sequences",
        "token-level",
        "algorithm.token_weight={name: adv_reweight, alpha: 0.3}",
        "trl.importance_sampling_level=sequence",
        says="importance_sampling_level: token",
    ),
    mistake(
        "a revision that nothing asks for",
        "unused-revision",
        "algorithm.revision={references: 2}",
        says="advantage: ibpo",
    ),
    mistake(
        "a teacher that nothing asks for",
        "unused-teacher",
        "algorithm.teacher={template: '{prompt} {reference}'}",
        says="token_weight: rlsd",
    ),
    mistake(
        "IBPO without its revision", "missing-revision", "algorithm.advantage=ibpo", says="revision: {references: 3}"
    ),
    mistake(
        "groups kept in micro-batches that hold none",
        "whole-groups",
        "algorithm.keep_groups=forward",
        "trl.per_device_train_batch_size=2",
    ),
    mistake("TRL's own scaling", "in-another-section", "trl.scale_rewards=none", says="dr_grpo"),
    mistake(
        "half of the batch in words",
        "prompts-per-rollout-alone",
        "algorithm.sequences_per_update=null",
        says="sequences_per_update",
    ),
    mistake("an update that cuts a micro-batch", "cut-update", "algorithm.sequences_per_update=12", says="16"),
    mistake("groups that do not fit the batch", "cut-microbatch", "trl.num_generations=5", says="prompts_per_rollout"),
    mistake(
        "both ways to cut",
        "gradient-accumulation-steps-beside-algorithm",
        "trl.gradient_accumulation_steps=2",
        says="gradient_accumulation_steps",
    ),
    mistake(
        "filtered sampling under a ratio", "sampling", "trl.top_p=0.9", "algorithm.update_schedule=lopti", says="top_p"
    ),
]
