"""Processes, packages, disks, checkpoints, evaluations and loggers."""

from tests.trainer.run.check.mistakes.mistake import mistake

LAUNCH = [
    mistake("another number of processes", "other-number-of-processes", "num_processes=2", processes=1, says="2"),
    mistake(
        "vLLM is not installed",
        "vllm-version",
        "trl.use_vllm=true",
        "trl.vllm_mode=colocate",
        lacking="vllm",
        says="vllm",
    ),
    mistake("a GPU that is not there", "no-gpu", "trl.use_cpu=false", severity="warning"),
    mistake(
        "checkpoints within a rollout batch",
        "inside-a-rollout-batch",
        "algorithm.update_schedule=lopti",
        "trl.save_steps=3",
        says="2 or 4",
    ),
    mistake(
        "an end within a rollout batch",
        "inside-a-rollout-batch",
        "algorithm.update_schedule=lopti",
        "trl.max_steps=3",
        says="2 or 4",
    ),
    mistake("the same tool twice", "tool-twice", "tools=[calculator, calculator]", says="calculator"),
    mistake("checkpoints without an optimizer", "not-resumable", "trl.save_only_model=true", says="save_only_model"),
    mistake(
        "one checkpoint, and the best",
        "best-checkpoint",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_total_limit=1",
        says="Write 2",
    ),
    mistake(
        "the best without checkpoints",
        "best-checkpoint",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_strategy=no",
    ),
    mistake("the best of one evaluation", "unknown-metric", "evaluation.keep_best=eval/test/avg@1", says="every_steps"),
    mistake(
        "a metric that nothing gives",
        "unknown-metric",
        "evaluation={every_steps: 2, keep_best: accuracy}",
        says="eval/test/avg@1",
    ),
    mistake(
        "greedy evaluation by temperature",
        "greater-than",
        "evaluation.temperature=0.0",
    ),
    mistake(
        "a learning rate that follows a loss",
        "unexplained",
        "trl.lr_scheduler_type=reduce_lr_on_plateau",
        "evaluation.every_steps=2",
        says="metric_for_best_model",
    ),
]
