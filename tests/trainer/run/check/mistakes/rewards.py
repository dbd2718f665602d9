"""Rewards and strategies: misspelt, without effect, or not exact together."""

from tests.trainer.run.check.mistakes.mistake import mistake

FORM = "{verifier: {name: soft_overlong, max_tokens: 8, buffer_tokens: 2}}"

REWARDS = [
    mistake("an unknown verifier", "Did you mean exact_match?", "rewards.0.verifier=exact_mach"),
    mistake("an unknown option", "case_sensitive", "rewards.0.verifier={name: exact_match, case: false}"),
    mistake("a module that is not there", "cannot be imported", "rewards.0.verifier=my_parts:no_such"),
    mistake("a module with a mistake in it", "cannot be imported", "rewards.0.verifier=broken_parts:judge"),
    mistake("the only reward weighs nothing", "weight: 0", "rewards.0.weight=0.0"),
    mistake("the only reward is a penalty", "weight = -1", "rewards.0.weight=-1.0", severity="warning"),
    mistake("two rewards of one name", "already labels", "rewards=[{verifier: exact_match}, {verifier: exact_match}]"),
    mistake("a verifier for other data", "the verifier cannot use", "rewards.0.verifier=countdown"),
    mistake(
        "form alone is rewarded",
        "no reward reads the reference",
        f"rewards=[{FORM}]",
        severity="warning",
    ),
    mistake(
        "form decides what is right",
        "says whether a row is right",
        f"rewards=[{FORM}, {{verifier: exact_match}}]",
        severity="warning",
    ),
    mistake("an unknown estimator", "Did you mean grpo?", "algorithm.advantage=grop"),
    mistake("an unknown prompt sampler", "Did you mean dynamic?", "algorithm.prompt_sampler=dynamc"),
    mistake(
        "an unknown option of a weight",
        "Did you mean alpha?",
        "algorithm.token_weight={name: adv_reweight, alpah: 0.3}",
    ),
    mistake("a coefficient under the clipped loss", "loss_type: cispo", "algorithm.coefficient=topr"),
    mistake(
        "Lopti with iterations", "Leave num_iterations out", "algorithm.update_schedule=lopti", "trl.num_iterations=2"
    ),
    mistake(
        "Lopti with KL in the wrong loss",
        "beta: 0.0",
        "algorithm.update_schedule=lopti",
        "trl.beta=0.1",
        "trl.loss_type=grpo",
    ),
    mistake(
        "a token weight at the level of sequences",
        "importance_sampling_level: token",
        "algorithm.token_weight={name: adv_reweight, alpha: 0.3}",
        "trl.importance_sampling_level=sequence",
    ),
    mistake("a revision that nothing asks for", "advantage: ibpo", "algorithm.revision={references: 2}"),
    mistake("IBPO without its revision", "revision: {references: 3}", "algorithm.advantage=ibpo"),
    mistake(
        "groups kept in micro-batches that hold none",
        "whole groups in every forward pass",
        "algorithm.keep_groups=forward",
        "trl.per_device_train_batch_size=2",
    ),
    mistake("TRL's own scaling", "dr_grpo", "trl.scale_rewards=none"),
    mistake("half of the batch in words", "Give sequences_per_update too", "algorithm.sequences_per_update=null"),
    mistake("an update that cuts a micro-batch", "Write 16", "algorithm.sequences_per_update=12"),
    mistake("groups that do not fit the batch", "prompts_per_rollout", "trl.num_generations=5"),
    mistake("both ways to cut", "Delete gradient_accumulation_steps", "trl.gradient_accumulation_steps=2"),
    mistake("filtered sampling under a ratio", "Leave top_p out", "trl.top_p=0.9", "algorithm.update_schedule=lopti"),
]
