"""Files of another kind, known by a key: one problem for the file instead of one for each key."""

from typing import Literal

from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.yaml_document import Node

FileKind = Literal["run", "sweep", "claim", "launcher"]
_KINDS: dict[FileKind, tuple[str, str]] = {
    "run": ("model", "evenkeel train"),
    "sweep": ("variants", "evenkeel sweep run"),
    "claim": ("against", "evenkeel claim"),
    "launcher": ("distributed_type", "evenkeel launch --config_file"),
}
"""Kind → a key that no other kind has, and the command that takes such a file."""


def check_kind(tree: Node, wanted: FileKind) -> None:
    """Refuse a file of another kind than ``wanted``.

    Raises:
        Refusal: one problem, which names the kind and where the file belongs.
    """
    for kind, (mark, command) in _KINDS.items():
        if kind != wanted and mark in tree.value and _KINDS[wanted][0] not in tree.value:
            what = f"has the key {mark} of a {kind} file; a {wanted} file is needed."
            raise config_error("other-kind-of-file", "", what, f"Write {command} {tree.origin.source}.", tree.origin)
