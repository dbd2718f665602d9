"""A real SLURM of two nodes on this machine: munged, slurmctld and two slurmd, with all their files in one folder."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
NODES = ("n1", "n2")


def missing() -> str:
    """Why no cluster can be started here; empty where one can."""
    absent = [name for name in PROGRAMS if _program(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "slurmd must be root to start jobs"


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which SLURM's commands find the cluster; its daemons end with the block."""
    folder.chmod(0o755)  # munged wants its socket to be reachable
    ports = _free_ports(1 + len(NODES))
    (folder / "slurm.conf").write_text(_configuration(folder, ports))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    (folder / "state").mkdir()
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--{name}-file={folder / f'munge.{name}'}" for name in ("key", "pid", "log", "seed")]
    commands = [
        ["munged", "--foreground", "--force", f"--socket={folder / 'munge.socket'}", *munge],
        ["slurmctld", "-D", "-c"],
        *(["slurmd", "-D", "-N", node] for node in NODES),
    ]
    daemons = []
    try:
        for command in commands:
            log = (folder / f"{command[0]}-{len(daemons)}.log").open("w")
            program = [str(_program(command[0])), *command[1:]]
            daemons.append(subprocess.Popen(program, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                wait_until((folder / "munge.socket").exists, lambda: _logs(folder), seconds=60)
        wait_until(lambda: _idle_nodes(environment) == len(NODES), lambda: _logs(folder), seconds=60)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(daemons):
            daemon.wait(timeout=30)


def _configuration(folder: Path, ports: list[int]) -> str:
    host = socket.gethostname().partition(".")[0]
    nodes = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN"
        for name, port in zip(NODES, ports[1:], strict=True)
    ]
    return "\n".join(
        [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={ports[0]}",
            "SlurmUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={folder / 'munge.socket'},cred_expire=5",  # a job put back waits so many seconds
            f"StateSaveLocation={folder / 'state'}",
            f"SlurmdSpoolDir={folder / 'spool-%n'}",
            f"SlurmctldPidFile={folder / 'slurmctld.pid'}",
            f"SlurmdPidFile={folder / 'slurmd-%n.pid'}",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "MpiDefault=none",
            "ReturnToService=2",
            *nodes,
            f"PartitionName=test Nodes={','.join(NODES)} Default=YES MaxTime=INFINITE State=UP",
            "",
        ]
    )


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _idle_nodes(environment: dict[str, str]) -> int:
    command = ["sinfo", "--noheader", "--Node", "--format=%T"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return result.stdout.split().count("idle")


def _logs(folder: Path) -> str:
    return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in folder.glob("*.log"))
