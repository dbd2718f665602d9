"""With which TRL does the training step work? Its tests, parity among them, with a release of TRL.

    python scripts/trl_versions.py                    # the newest release on the index
    python scripts/trl_versions.py 1.15.0 1.16.0

Each release gets a virtual environment in a temporary folder, which sees the packages of this one and holds TRL, and
what else TRL needs in another version; torch stays what it is. Two to four minutes a release on two cores.

Prints a table. Exit status: 0 every release works, 1 one does not.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from importlib.metadata import version

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("tests/trainer/step", "tests/trainer/run/config", "tests/trainer/run/check")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("releases", nargs="*", metavar="X.Y.Z")
    releases = parser.parse_args(argv).releases or [newest()]
    print("| TRL | tests passed | first that failed |\n|---|---|---|")
    all_work = True
    for release in releases:
        passed, failed = tried(release)
        print(f"| {release} | {passed} of {passed + len(failed)} | {failed[0] if failed else ''} |", flush=True)
        all_work = all_work and passed > 0 and not failed
    return 0 if all_work else 1


def newest() -> str:
    """The newest release on the index."""
    listed = subprocess.run([*PIP, "index", "versions", "trl"], capture_output=True, text=True, check=True).stdout
    (line,) = re.findall(r"Available versions: (.*)", listed)
    return str(max(map(Version, line.split(", "))))


def tried(release: str) -> tuple[int, list[str]]:
    """How many tests passed with ``release``, and the names of the others."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        python = str(folder / "bin" / "python")
        (packages,) = (folder / "lib").glob("python*/site-packages")
        present = sysconfig.get_path("purelib")
        (packages / "present.pth").write_text(f"import site; site.addsitedir({present!r})\n")  # with its .pth files
        (folder / "constraints.txt").write_text(f"torch=={version('torch')}\n")
        install = [*PIP, "--python", python, "install", "--constraint", str(folder / "constraints.txt")]
        subprocess.run([*install, f"trl=={release}"], stdout=subprocess.DEVNULL, check=True)
        report = folder / "report.xml"
        pytest = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", f"--junitxml={report}"]
        pytest += ["--continue-on-collection-errors", "-m", "not slow and not gpu and not standin"]
        subprocess.run([*pytest, *TESTS], cwd=ROOT, stdout=subprocess.DEVNULL)
        cases = [*ElementTree.parse(report).iter("testcase")]
    failed = [case for case in cases if {each.tag for each in case} & {"failure", "error"}]
    return len(cases) - len(failed), [f"{case.get('classname')}.{case.get('name')}".lstrip(".") for case in failed]


if __name__ == "__main__":
    sys.exit(main())
