"""Which files a sandboxed program may read: python itself, the packages installed for it, the system's libraries."""

import importlib.util
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from rewards.isolation.sandbox.limits import SandboxUnavailableError

_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/urandom")


def readable_paths(preimported: Iterable[str] = ()) -> list[str]:
    """Folders and files, absolute, that exist here.

    Of a package that is installed in place (editable) and lies elsewhere only its own folder is added, and only where
    it is named in ``preimported``.
    """
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), f"{sys.prefix}/lib", f"{sys.base_prefix}/lib", *_SYSTEM]
    for name in preimported:
        spec = importlib.util.find_spec(name.partition(".")[0])
        if spec is not None:
            paths += spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return sorted({str(Path(path).resolve()) for path in paths if Path(path).exists()})


def bubblewrap_command(readable: Iterable[str]) -> list[str]:
    """The start of a command line that shows a process these paths and python, read-only, and nothing else.

    No ``--die-with-parent``: that is bound to the *thread* of the trainer that started it. The zygote watches its
    control socket instead.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailableError(
            "isolation is 'bubblewrap' and there is no bwrap on the PATH: install the package bubblewrap, "
            "or use isolation 'landlock_seccomp', which needs nothing installed"
        )
    python = Path(sys.executable)
    paths = {*readable, str(python.parent), str(python.resolve().parent), f"{sys.prefix}/pyvenv.cfg"}
    command = [program, "--unshare-all", "--proc", "/proc", "--dev", "/dev"]
    for path in sorted(paths):
        command += ["--ro-bind-try", path, path]
    for link in (Path("/lib"), Path("/lib64")):
        if link.is_symlink():
            command += ["--symlink", str(link.readlink()), str(link)]
    return [*command, "--"]
