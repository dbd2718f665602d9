"""Processes, packages, disks, checkpoints, evaluations and loggers."""

from tests.trainer.run.check.mistakes.mistake import mistake

ONLINE = ("logging={report_to: [wandb], wandb_mode: online}",)
NO_KEY = {"WANDB_API_KEY": "", "WANDB_MODE": "", "NETRC": "no_such_file"}

LAUNCH = [
    mistake("another number of processes", "Start it on 2", "num_processes=2", processes=1),
    mistake("a number that does not divide the batch", "3 ranks", "num_processes=null", processes=3),
    mistake("vLLM is not installed", "vllm", "trl.use_vllm=true", "trl.vllm_mode=colocate", lacking="vllm"),
    mistake("DeepSpeed is not installed", "deepspeed", "trl.deepspeed=zero2.json", lacking="deepspeed"),
    mistake("Liger is not installed", "liger-kernel", "trl.use_liger_kernel=true", lacking="liger_kernel"),
    mistake("8-bit Adam is not installed", "bitsandbytes", "trl.optim=adamw_8bit", lacking="bitsandbytes"),
    mistake("a GPU that is not there", "no GPU", "trl.use_cpu=false", severity="warning"),
    mistake("a directory under a file", "output_dir", "output_dir=run.yaml/run"),
    mistake("a directory that may not be written", "output_dir", "output_dir=/proc/run"),
    mistake(
        "checkpoints within a rollout batch", "save_steps: 4", "algorithm.update_schedule=lopti", "trl.save_steps=3"
    ),
    mistake("an end within a rollout batch", "max_steps: 2 or 4", "algorithm.update_schedule=lopti", "trl.max_steps=3"),
    mistake(
        "checkpoints that are never written", "no checkpoint before the end", "trl.save_steps=500", severity="note"
    ),
    mistake("checkpoints without an optimizer", "save_only_model", "trl.save_only_model=true"),
    mistake(
        "one checkpoint, and the best",
        "save_total_limit: 2",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_total_limit=1",
    ),
    mistake(
        "the best without checkpoints",
        "no checkpoint is saved",
        "evaluation={every_steps: 2, keep_best: eval/test/avg@1}",
        "trl.save_strategy=no",
    ),
    mistake("evaluations without rows", "no held-out rows", "evaluation.every_steps=2", "data.test=null"),
    mistake("no held-out rows at all", "no held-out rows", "data.test=null", severity="note"),
    mistake("evaluations behind the end", "every_steps = 100", "evaluation.every_steps=100", severity="warning"),
    mistake("the best of one evaluation", "every_steps", "evaluation.keep_best=eval/test/avg@1"),
    mistake("a metric that nothing gives", "eval/test/avg@1", "evaluation={every_steps: 2, keep_best: accuracy}"),
    mistake("greedy evaluation by temperature", "greedy: true", "evaluation.temperature=0.0"),
    mistake(
        "a learning rate that follows a loss",
        "constant_with_warmup",
        "trl.lr_scheduler_type=reduce_lr_on_plateau",
        "evaluation.every_steps=2",
    ),
    mistake("W&B online without a key", "wandb login", *ONLINE, environment=NO_KEY),
    mistake("W&B online, and nothing reported", "report_to", "logging.wandb_mode=online", severity="warning"),
    mistake("a hub without a token", "HF_TOKEN", "trl.push_to_hub=true"),
    mistake("a token in the file", "HF_TOKEN", "trl.hub_token=hf_x"),
    mistake("a DeepSpeed file that is not there", "zero9.json", "trl.deepspeed=zero9.json"),
    mistake("a server without vLLM", "use_vllm", "trl.vllm_mode=server", severity="warning"),
    mistake("an unknown way to run vLLM", "colocate", "trl.use_vllm=true", "trl.vllm_mode=local"),
    mistake("bf16 on the CPU, by default", "bf16", "trl.bf16=null", severity="note"),
]
