"""A file of another kind, told by its keys: one sentence in the place of a problem for each of them."""

from collections.abc import Collection
from dataclasses import dataclass

from trainer.run.config.problems import ConfigError, Problem
from trainer.run.config.yaml_document import Node


@dataclass(frozen=True)
class FileKind:
    """Files that are told by ``marks``: ``least`` of these keys stand at their top, and none of ``without``.

    Attributes:
        words: what such a file is.
        use: where it belongs; ``{file}`` is its name.
    """

    words: str
    marks: frozenset[str]
    use: str
    least: int = 1
    without: frozenset[str] = frozenset()

    def is_that_of(self, keys: Collection[str]) -> bool:
        """Whether a file with these keys is of this kind."""
        return len(self.marks & {*keys}) >= self.least and not self.without & {*keys}


_RUN = frozenset({"model", "rewards", "algorithm", "trl"})
RUN = FileKind(
    "a run", _RUN | {"data"}, "Give it to scripts/train.py {file}.", without=frozenset({"variants", "config"})
)
SWEEP = FileKind(
    "a sweep",
    frozenset({"config", "variants", "baseline", "seeds", "grid", "tune", "executor", "retries", "unfair"}),
    "Give it to scripts/sweep.py run {file}.",
    least=2,
    without=_RUN,
)
OTHER_KINDS = (
    FileKind(
        "an accelerate launcher",
        frozenset({"compute_environment", "distributed_type", "fsdp_config", "deepspeed_config", "mixed_precision"}),
        "Launch with it: scripts/launch.py --config_file {file} scripts/train.py RUN.yaml.",
        without=_RUN,
    ),
    FileKind(
        "DeepSpeed",
        frozenset({"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "gradient_clipping"}),
        "Name it in a run's file: `trl: {{deepspeed: {file}}}`, or better launch with configs/accelerate/zero2.yaml.",
        without=_RUN,
    ),
    FileKind(
        "a sweep of W&B's",
        frozenset({"program", "method", "parameters"}),
        "Start its agents: wandb sweep {file}.",
        least=2,
        without=_RUN,
    ),
    FileKind(
        "a model (its config.json)",
        frozenset({"architectures", "model_type", "transformers_version"}),
        "Name the model in a run's file: `model: {{name_or_path: FOLDER}}`.",
        least=2,
        without=_RUN,
    ),
    FileKind(
        "`trl grpo`, without sections",
        frozenset(
            {"model_name_or_path", "dataset_name", "reward_funcs", "output_dir", "learning_rate", "num_generations"}
        ),
        "Here keys stand in sections: `model: {{name_or_path: …}}`, `data: {{train: {{path: …}}}}`, `rewards:`, and "
        "the arguments of GRPOConfig under `trl:`; configs/quickstart.yaml is an example.",
        least=2,
        without=_RUN | {"data", "extends"},
    ),
)


def check_kind(tree: Node, wanted: FileKind) -> None:
    """Refuse a file of another kind than ``wanted``.

    Raises:
        ConfigError: one problem, which names the kind and what it is given to.
    """
    keys, file = tree.value.keys(), tree.origin.source
    if wanted.is_that_of(keys):
        return
    for kind in (RUN, SWEEP, *OTHER_KINDS):
        if kind.is_that_of(keys):
            told = ", ".join(sorted(kind.marks & {*keys}))
            what = f"this is the file of {kind.words}, told by its keys {told}; that of {wanted.words} is needed."
            raise ConfigError([Problem("", what, kind.use.format(file=file), tree.origin)])
