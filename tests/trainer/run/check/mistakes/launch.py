"""Processes, packages, disks, checkpoints, evaluations and loggers."""

from tests.trainer.run.check.mistakes.mistake import mistake

ONLINE = ("logging={report_to: [wandb]}",)
NO_KEY = {"WANDB_API_KEY": "", "WANDB_MODE": "online", "NETRC": "no_such_file"}

LAUNCH = [
    mistake("another number of processes", "other-number-of-processes", "num_processes=2", processes=1, says="on 2"),
    mistake(
        "vLLM is not installed",
        "vllm-not-installed",
        "trl.use_vllm=true",
        "trl.vllm_mode=colocate",
        lacking="vllm",
        says="vllm",
    ),
    mistake(
        "DeepSpeed is not installed",
        "package-not-installed",
        "trl.deepspeed=zero2.json",
        lacking="deepspeed",
        says="deepspeed",
    ),
    mistake("a GPU that is not there", "no-gpu", "trl.use_cpu=false", severity="warning"),
    mistake("a directory under a file", "output-dir-not-writable", "output_dir=run.yaml/run", says="output_dir"),
    mistake(
        "checkpoints within a rollout batch",
        "checkpoint-inside-a-rollout-batch",
        "algorithm.update_schedule=lopti",
        "trl.save_steps=3",
        says="save_steps: 4",
    ),
    mistake(
        "an end within a rollout batch",
        "end-inside-a-rollout-batch",
        "algorithm.update_schedule=lopti",
        "trl.max_steps=3",
        says="2 or 4",
    ),
    mistake("checkpoints that are never written", "checkpoint-beyond-end", "trl.save_steps=500", severity="note"),
    mistake(
        "rollout batches written ahead beyond the end",
        "staleness-beyond-end",
        "speed.staleness=9",
        severity="warning",
        says="staleness = 9",
    ),
    mistake("the same tool twice", "tool-twice", "tools=[calculator, calculator]", says="calculator"),
    mistake("checkpoints without an optimizer", "save-only-model", "trl.save_only_model=true", says="save_only_model"),
    mistake(
        "one checkpoint, and the best",
        "best-checkpoint-alone",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_total_limit=1",
        says="save_total_limit: 2",
    ),
    mistake(
        "the best without checkpoints",
        "best-checkpoint-without-saving",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_strategy=no",
    ),
    mistake("no held-out rows at all", "no-held-out-rows", "data.test=null", severity="note"),
    mistake(
        "evaluations behind the end",
        "evaluation-beyond-end",
        "evaluation.every_steps=100",
        severity="warning",
        says="every_steps = 100",
    ),
    mistake(
        "the best of one evaluation", "keep-best-of-one", "evaluation.keep_best=eval/test/avg@1", says="every_steps"
    ),
    mistake(
        "a metric that nothing gives",
        "unknown-metric",
        "evaluation={every_steps: 2, keep_best: accuracy}",
        says="eval/test/avg@1",
    ),
    mistake(
        "greedy evaluation by temperature",
        "temperature-not-positive",
        "evaluation.temperature=0.0",
        says="greedy: true",
    ),
    mistake(
        "a learning rate that follows a loss",
        "learning-rate-follows-the-evaluation",
        "trl.lr_scheduler_type=reduce_lr_on_plateau",
        "evaluation.every_steps=2",
        says="constant_with_warmup",
    ),
    mistake("W&B online without a key", "no-wandb-key", *ONLINE, environment=NO_KEY),
    mistake("a hub without a token", "no-hub-token", "trl.push_to_hub=true", says="HF_TOKEN"),
    mistake("a DeepSpeed file that is not there", "no-deepspeed-file", "trl.deepspeed=zero9.json", says="zero9.json"),
    mistake(
        "a tracker that is not installed",
        "tracker-not-installed",
        "logging={report_to: [comet_ml]}",
        lacking="comet_ml",
        says="comet_ml",
    ),
    mistake(
        "a tracker without its server",
        "tracker-without-server",
        "logging={report_to: [kubeflow]}",
        environment={"KUBEFLOW_TRAINER_SERVER_URL": ""},
        says="KUBEFLOW_TRAINER_SERVER_URL",
    ),
    mistake(
        "float16 on a GPU",
        "fp16-unmeasured",
        "trl.use_cpu=false",
        "trl.fp16=true",
        severity="note",
        says="measured in float16",
    ),
    mistake("bf16 on the CPU, by default", "bf16-on-cpu", "trl.bf16=null", severity="note", says="bf16"),
]
