"""Files of another kind, known by their keys: one problem for the file instead of one for each key."""

from collections.abc import Collection
from dataclasses import dataclass

from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.yaml_document import Node


@dataclass(frozen=True)
class FileKind:
    """A kind of file, which has ``least`` of the keys ``marks`` at its top level, and none of ``without``.

    Attributes:
        name: what such a file is.
        use: where it belongs; ``{file}`` is its name.
    """

    name: str
    marks: frozenset[str]
    use: str
    least: int = 1
    without: frozenset[str] = frozenset()

    def has(self, keys: Collection[str]) -> bool:
        """Whether a file with these keys is of this kind."""
        return len(self.marks & {*keys}) >= self.least and not self.without & {*keys}


_RUN = frozenset({"model", "rewards", "algorithm", "trl"})


def _other(name: str, marks: str, use: str, least: int = 1) -> FileKind:
    return FileKind(name, frozenset(marks.split()), use, least, _RUN)


RUN = FileKind("a run", _RUN | {"data"}, "Give it to evenkeel train {file}.", without=frozenset({"variants", "config"}))
SWEEP = _other(
    "a sweep",
    "config variants baseline seeds grid tune executor retries unfair",
    "Give it to evenkeel sweep run {file}.",
    2,
)
CLAIM = _other("a claim", "claim source against matters direction", "Give it to evenkeel claim {file}.", 2)
OTHER_KINDS = (
    CLAIM,
    _other(
        "an accelerate launcher",
        "compute_environment distributed_type fsdp_config deepspeed_config mixed_precision",
        "Launch with it: evenkeel launch --config_file {file} RUN.yaml.",
    ),
)


def check_kind(tree: Node, wanted: FileKind) -> None:
    """Refuse a file of another kind than ``wanted``.

    Raises:
        Refusal: one problem, which names the kind and where the file belongs.
    """
    keys, file = tree.value.keys(), tree.origin.source
    for kind in () if wanted.has(keys) else (RUN, SWEEP, *OTHER_KINDS):
        if kind.has(keys):
            marks = ", ".join(sorted(kind.marks & {*keys}))
            what = f"this is a file for {kind.name}, as its keys say ({marks}), and a file for {wanted.name} is needed."
            raise config_error("other-kind-of-file", "", what, kind.use.format(file=file), tree.origin)
