"""Every metric that a run logs: what it is, its unit, and when it is there. One declaration, for the page of metrics.

In a name ``{a, b}`` is one of these and ``<x>`` whatever the run calls it. Trainings in the tests log what is declared here
and nothing else.
"""
# ruff: noqa: E501 (rows of a table)

from typing import NamedTuple


class Metric(NamedTuple):
    """A metric, or several of one form.

    Attributes:
        name: as in ``metrics.jsonl`` and at trackers.
        unit: empty for a ratio of likes.
        meaning: what is computed; formulas in the notation of ``trainer/algorithms/README.md``.
        when: what it takes to be logged; empty = it is in every line of training.
    """

    name: str
    unit: str
    meaning: str
    when: str = ""


# fmt: off
UPDATE = (
    Metric("step", "optimizer steps", "done when the line was written"),
    Metric("epoch", "passes", "over the training prompts, done when the line was written"),
    Metric("loss", "", "what was differentiated, mean over the steps since the last line. On-policy and without KL it is −Σ A / D, whatever the policy has learned"),
    Metric("grad_norm", "", "‖g‖₂ of all trained weights before clipping, of the line's last step"),
    Metric("learning_rate", "", "of the first group of weights, in the line's last step"),
    Metric("entropy", "nats", "mean over the counted tokens of H = −Σ_v π(v) log π(v), π the current policy at the sampling temperature"),
    Metric("entropy/{number, word, symbol, special}", "nats", "the same at tokens with a digit; with a letter and no digit; with neither; of the tokenizer's own. `entropy` is their mean, weighted by how many there are. Which tokens are uncertain: arXiv 2506.01939; the classes are ours ([`token_classes`](../trainer/algorithms/token_classes.py))", "in a run file's run"),
    Metric("kl", "nats a token", "mean over the counted tokens of e^d − d − 1, d = log π_ref − log π", "`trl.beta` > 0"),
    Metric("drift/kl_{all_right, all_wrong}", "nats a token", "the same on groups that teach nothing, where it is a side effect: the learning tax (below)", "`trl.beta` > 0, and such groups in the batch"),
    Metric("clip_ratio/{low_mean, high_mean, region_mean}", "", "share of the counted tokens with ρ < 1 − ε and A < 0; with ρ > 1 + ε_high and A > 0; of both", "`trl.loss_type` grpo, bnpo, dr_grpo, dapo, luspo"),
    Metric("clip_ratio/{low_min, high_max}", "", "of the shares of single responses the smallest clipped below, the largest clipped above", "the same"),
    Metric("cispo_clip_ratio", "", "share of the counted tokens with ρ > ε_high and A > 0", "`trl.loss_type: cispo` without a coefficient"),
    Metric("vespo/phi_seq_mean", "", "mean weight of TRL's VESPO", "`trl.loss_type: vespo`"),
    Metric("policy_loss", "", "`loss` without the entropy bonus", "`trl.entropy_coef` ≠ 0"),
    Metric("entropy_coef", "", "weight of the entropy bonus in the step", "`trl.entropy_coef` ≠ 0"),
    Metric("aux_loss", "", "load-balancing loss of a mixture of experts", "a model with a router, `trl.router_aux_loss_coef` ≠ 0"),
    Metric("token_weight/mean", "", "mean w over the counted tokens", "`algorithm.token_weight`"),
    Metric("coefficient/{mean, frac_negative}", "", "mean c over the counted tokens; share of those with c < 0", "`algorithm.coefficient`"),
    Metric("update_schedule/frac_tokens_pass_{1, 2}", "", "share of the counted tokens that a pass trains", "a schedule of several passes"),
    Metric("faults/skipped", "optimizer steps", "left out so far because loss or gradient was not finite, of the whole run", "`stopping.skip_faults` > 0, once there is one"),
)
ROLLOUT = (
    Metric("num_tokens", "tokens", "of prompts and completions generated so far, on all ranks"),
    Metric("completions/{mean, min, max}_length", "tokens", "of all completions"),
    Metric("completions/{mean, min, max}_terminated_length", "tokens", "of those that ended by themselves; 0 where none did"),
    Metric("completions/clipped_ratio", "", "share that was cut off at `trl.max_completion_length`"),
    Metric("reward", "", "mean over the judged completions of the weighted sum of rewards"),
    Metric("reward_std", "", "standard deviation of the same, over the whole batch"),
    Metric("rewards/<function>/{mean, std}", "", "the same of one reward function, before its weight"),
    Metric("frac_reward_zero_std", "", "share of completions whose group (with `scale_rewards: batch`: whose batch) has rewards of standard deviation 0"),
    Metric("verifier/accuracy", "", "share right of the judged rows; a row counts by the first reward that judges it", "verifiers"),
    Metric("verifier/<name>/{accuracy, frac_unjudged, frac_killed}", "", "of one verifier: right of what it judged; unjudged; cut off at a limit", "verifiers"),
    Metric("verifier/<name>/{time_p50_s, time_p99_s}", "s", "median and 99th percentile of the time of one judgement", "verifiers"),
    Metric("verifier/<name>/{false_positive, false_negative}", "", "share of its wrong, of its right completions of which training was told the opposite; the other `verifier/…` are true, while rewards and `groups/…` are what was told", "`rewards.<n>.noise`"),
    Metric("groups/frac_unjudged", "", "share of completions that were not judged"),
    Metric("groups/frac_dead", "", "share of groups whose judged rewards are equal: no gradient under an estimator with a baseline"),
    Metric("groups/{frac_all_correct, frac_all_wrong}", "", "share of groups whose judged responses are all right, all wrong", "verifiers"),
    Metric("advantage/mean_abs", "", "mean over the judged responses of abs(A), of token credit the mean over tokens first"),
    Metric("prompt_sampler/{rounds, generated_per_trained}", "", "rounds of generation; prompts generated for each that is trained", "`prompt_sampler` of several rounds"),
    Metric("prompt_sampler/{frac_live, reward}", "", "of all that was generated: share of groups with a gradient, mean reward", "the same"),
    Metric("revisions/{frac_revised, frac_repaired, frac_tokens_edited}", "", "share of completions that were generated again; of these share that a revision repaired; of the repaired ones' tokens share that it edited", "`algorithm.revision`"),
    Metric("revisions/tokens", "tokens", "that revisions generated", "`algorithm.revision`"),
    Metric("environment/{turns, calls}", "a completion", "messages of the policy; calls that reached an environment or a tool of the run file", "`environment:` or `tools:`"),
    Metric("environment/frac_failed", "", "share of rows whose environment failed, and which are unjudged: a call over its time limit, a lost connection, a worker that ended", "`environment:` or `tools:`"),
    Metric("environment/provenance", "", "share of the completions whose trained tokens are exactly those that the policy sampled, in the first two rollout batches: 1, or the run ends ([what is compared](provenance.md))", "tools"),
    Metric("tools/{call_frequency, failure_frequency}", "", "calls a completion; share of the calls that failed", "tools"),
    Metric("sampling/sampling_logp_difference/{mean, max}", "nats", "abs(log π_old − log π_vLLM) of the counted tokens", "vLLM with `vllm_importance_sampling_correction`"),
    Metric("sampling/importance_sampling_ratio/{min, mean, max}", "", "π_old / π_vLLM after its bound, of tokens or of responses", "the same"),
    Metric("vllm/agreement_max", "nats", "largest abs(log π − log π_vLLM) of probes scored by both, over all ranks, since the last line", "vLLM"),
)
MEASURED = (
    Metric("token_prob/frac_q{1, 2, 3, 4}", "", "share of the tokens with π_old in [0, ¼), [¼, ½), [½, ¾), [¾, 1]"),
    Metric("grad_share/q{1, 2, 3, 4}", "", "share of the update in those ranges: Σ abs(A · w) (1 − π_old) of the range over that of all"),
    Metric("token_prob/change_q{1, 2, 3, 4}", "", "mean π − π_old of the tokens in those ranges, once the rollout batch has been updated on", "several optimizer steps a rollout batch"),
    Metric("cancellation/shared_prefix", "", "abs(Σ_i c_i) / Σ_i abs(c_i) of what multiplies ∇log π of a token that a whole group shares, mean over these tokens and the groups of a step; 0 = they cancel, 1 = the learning tax in full", "where a group of the step shares a prefix"),
    Metric("cancellation/rollout_shared_prefix", "", "the same from k_i A alone, as if the rollout batch were one step", "the same, and a loss other than bnpo and vespo"),
    Metric("cancellation/frequent_tokens", "", "abs(Σ k_i A) / Σ_i abs(k_i A) over all places of a token id in a group, mean over the 16 most frequent ids", "a loss other than bnpo and vespo"),
    Metric("lag/rollout_batches", "rollout batches", "between the writing of a batch and its training, mean over the batches that training took up", "`speed.staleness` > 0"),
    Metric("lag/ess/{tokens, responses}", "", "effective sample size (Σ w)² / Σ w² over the number, of the ratios w = π / π_old of the trained tokens, of whole responses (their product): 1 where all are equal ([`drift`](../trainer/algorithms/drift.py))", "`speed.staleness` > 0"),
    Metric("lag/ratio/{frac_tail, max}", "", "of π / π_old of the trained tokens: share outside [½, 2], the largest", "`speed.staleness` > 0"),
    Metric("rounding/log_prob/mean_abs", "nats", "mean difference of log π of one policy between the pass that scored π_old and the first training pass: 0 without rounding", "π_old is scored"),
    Metric("rounding/coefficient/mean", "", "what that would make of the coefficient in the first optimizer step of a rollout batch, as a multiple of what it is ([rounding](devices.md#rounding-noise-of-log-probabilities))", "the same, and `algorithm.coefficient`"),
)
TIME = (
    Metric("timing/{generate, sync, old_logps, reference, verify_wait, prepare, update, log}_s", "s", "of an optimizer step, by what it went into; together its wall time. What each holds: [`phases`](../trainer/step/phases.py)"),
    Metric("timing/verify_s", "s", "all judging; what it is longer than `verify_wait` ran beside scoring ([`judging`](../trainer/step/judging.py))"),
    Metric("step_time", "s", "TRL's: the micro-batches of an optimizer step, with what they generate, without the optimizer"),
    Metric("train_runtime", "s", "of training, a resumed run's parts together", "the last line"),
    Metric("train_{samples, steps}_per_second", "1/s", "completions trained, optimizer steps, over the whole run", "the last line"),
    Metric("train_loss", "", "mean `loss` of all steps", "the last line"),
    Metric("total_flos", "", "transformers' estimate, which counts no generation: 0 here", "the last line"),
)
HELD_OUT = (
    Metric("eval/<set>/{avg@<k>, greedy}", "", "accuracy of k samples a row, of the greedy answer; sampled from a seed of their own, so that evaluating does not change what is trained", "evaluations"),
    Metric("eval/<set>/{pass@<k>, maj@<k>}", "", "share of rows that one of k samples solves (unbiased, arXiv 2107.03374); that the most frequent answer solves", "evaluations with `samples` above 1"),
    Metric("eval/<set>/gap@<k>", "", "pass@k − avg@k: what the policy finds now and then, and training can still turn into accuracy (compare arXiv 2504.13837)", "the same"),
    Metric("eval/<set>/{frac_truncated, frac_unjudged}", "", "share of the answers that were cut off, that were not judged", "evaluations"),
    Metric("eval/<set>/mean_tokens", "tokens", "mean length of the answers", "evaluations"),
    Metric("eval/<set>/tokens_per_second", "1/s", "generated on all ranks", "evaluations"),
    Metric("eval/<set>/<group>/{avg@<k>, pass@<k>, maj@<k>, gap@<k>, greedy}", "", "the same of the rows of one group", "held-out rows with a column `group`"),
    Metric("eval_reward", "", "mean reward of the first decoding over the rows of all sets", "evaluations"),
    Metric("eval_verifier/<metric>", "", "`verifier/…` of these answers", "evaluations"),
)
# fmt: on
METRICS = {
    "The update": UPDATE,
    "The rollout batch": ROLLOUT,
    "What the update does": MEASURED,
    "Held-out rows": HELD_OUT,
    "Time": TIME,
}
"""Heading → its metrics."""
