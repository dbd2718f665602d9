"""The attacks of the folder beside this file, and the targets that they are given."""

import ctypes
import os
import platform
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenkeel.rewards.isolation.sandbox import Limits

HERE = Path(__file__).parent
SECRET_WORD = f"secret-{secrets.token_hex(8)}"


@dataclass(frozen=True)
class Attack:
    """A program that tries to break out.

    Comments in its file say more: ``# ends: STATUS`` how its run ends (default exited), ``# machine: NAME`` the only
    processor it is written for, ``# unconfined: skip, WHY`` that it proves nothing where nothing is confined; nor does
    one that a crash or a limit ends, for these end it at every level.
    """

    name: str
    text: str

    def option(self, name: str, default: str) -> str:
        found = re.search(rf"^# {name}: (.*)$", self.text, re.MULTILINE)
        return found[1] if found else default

    @property
    def ends(self) -> str:
        return self.option("ends", "exited")

    @property
    def limits(self) -> Limits:
        """Short where the attack is expected to run into one, ample otherwise, also on a busy machine."""
        cpu_seconds = 0.3 if self.ends == "killed_cpu" else 5
        wall_seconds = 1.0 if self.ends == "killed_wall" else 60
        return Limits(cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)

    @property
    def fits(self) -> bool:
        return self.option("machine", platform.machine()) == platform.machine()

    @property
    def harmless(self) -> bool:
        """Works, and does no harm, where nothing is confined."""
        return self.ends == "exited" and not self.option("unconfined", "hits").startswith("skip")

    def source(self, targets: dict[str, Any]) -> str:
        constants = "\n".join(f"{name} = {value!r}" for name, value in targets.items())
        prelude = (HERE / "attack_prelude.py").read_text()
        return f"{prelude}\n{constants}\n{self.text}\nos.write(1, b'END\\n')\n"


ATTACKS = [Attack(path.stem, path.read_text()) for path in sorted((HERE / "attacks").glob("*.py"))]


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, Any]]:
    """What this process, in the role of the trainer, has to lose: a server, sockets, files, memory, environment."""
    secret, copy = folder / "secret.txt", folder / "copy.txt"
    secret.write_text(SECRET_WORD)
    copy.write_text(SECRET_WORD)
    memory = ctypes.create_string_buffer(SECRET_WORD.encode())
    os.environ["SECRET"] = SECRET_WORD
    abstract = f"evenkeel-{os.getpid()}-{secrets.token_hex(4)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as without_path,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        by_path.bind(str(folder / "stream"))
        without_path.bind("\0" + abstract)
        datagrams.bind(str(folder / "datagrams"))
        by_path.listen()
        without_path.listen()
        yield {
            "TRAINER": os.getpid(),
            "TRAINER_ADDRESS": ctypes.addressof(memory),
            "PORT": server.getsockname()[1],
            "UNIX_SOCKET": str(folder / "stream"),
            "ABSTRACT_SOCKET": abstract,
            "UNIX_DATAGRAM_SOCKET": str(folder / "datagrams"),
            "SECRET": str(secret),
            "SECRET_COPY": str(copy),
            "HOME": str(Path.home()),
        }
    os.environ.pop("SECRET", None)
