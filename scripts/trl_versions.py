"""With which TRL does the trainer work? The tests of the step and of the run file's checks, per version of TRL.

    python scripts/trl_versions.py                       # three newest minor releases, all that pyproject.toml names
    python scripts/trl_versions.py --versions 1.15.0 1.16.0 --all
    python scripts/trl_versions.py --versions --checkout ../trl   # TRL's main: HEAD of a clone, or of a bare one

Each version gets a virtual environment in a temporary folder. It sees the packages of this one, and holds TRL and what
else TRL needs in another version; torch stays what it is. Two to four minutes for a version that works.

Prints a table: works; works but for …, where default strategies still equal TRL's trainer bit for bit; broken by ….
Exit status: 0 the range in pyproject.toml is true, 1 a release in it does not work, 2 nothing could be tried.
"""

from pathlib import Path
from runpy import run_path

if __name__ == "__main__":
    run_path(str(Path(__file__).with_name("_installed.py")))

import argparse
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import chain

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PARITY = "tests.trainer.step.test_parity"
FAST = ("tests/trainer/step", "tests/trainer/run/config", "tests/trainer/run/check")
SLOW = ("tests/trainer/step/test_parity.py",)
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@dataclass
class Tried:
    """What a version's tests said.

    Attributes:
        causes: each error → the tests that ended with it, the most frequent first.
    """

    trl: str
    is_declared: bool
    tests: int
    causes: dict[str, list[str]]

    @property
    def failed(self) -> int:
        return sum(map(len, self.causes.values()))

    @property
    def works(self) -> bool:
        return self.tests > 0 and self.failed == 0

    @property
    def verdict(self) -> str:
        if self.works:
            return "works"
        if not self.tests:
            return "broken by: no test ran"
        cause, names = next(iter(self.causes.items()))
        said = cause.removeprefix("Refusal: ").split(";")[0]
        if self.failed == self.tests or any(PARITY in name for name in chain(*self.causes.values())):
            return f"broken by: {said}"
        return f"works but for: {said} ({names[0]})"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status, see above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--versions", nargs="*", metavar="X.Y.Z", help="releases to try instead of the newest ones")
    parser.add_argument("--checkout", type=Path, metavar="PATH", help="a git repository of TRL: its HEAD is tried too")
    parser.add_argument("--all", action="store_true", help="parity with TRL over the whole matrix of settings")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every cause of every version")
    options = parser.parse_args(argv)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (declared,) = (each for each in map(Requirement, project["dependencies"]) if each.name == "trl")
    tried = []
    try:
        for release in released(declared) if options.versions is None else options.versions:
            tried.append(outcome(f"trl=={release}", release, declared, slow=options.all))
        if options.checkout is not None:
            log = ["git", "-C", str(options.checkout), "log", "-1", "--format=%h of %cs"]
            commit = subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()
            source = f"git+file://{options.checkout.resolve()}"
            tried.append(outcome(source, f"main at {commit}", declared, slow=options.all))
    except subprocess.CalledProcessError as error:
        print(error.stderr or error, file=sys.stderr)
        return 2
    print("| TRL | in the range | tests passed | verdict |\n|---|---|---|---|")
    for each in tried:
        passed = f"{each.tests - each.failed} of {each.tests}"
        print(f"| {each.trl} | {'yes' if each.is_declared else 'no'} | {passed} | {each.verdict} |")
    if options.json is not None:
        options.json.write_text(
            json.dumps([asdict(each) | {"verdict": each.verdict} for each in tried], indent=2) + "\n"
        )
    untrue = [each.trl for each in tried if each.is_declared and not each.works]
    wider = [each.trl for each in tried if not each.is_declared and each.works]
    if untrue:
        print(f"\n{declared} in pyproject.toml is not true: {', '.join(untrue)}.")
    if wider:
        print(f"\n{declared} in pyproject.toml can be wider: {', '.join(wider)}.")
    return 1 if untrue else 0


def released(declared: Requirement) -> list[str]:
    """What the index has: the newest patch of the three newest minor releases, and every release that is declared."""
    listed = subprocess.run([*PIP, "index", "versions", "trl"], capture_output=True, text=True, check=True).stdout
    (line,) = re.findall(r"Available versions: (.*)", listed)
    versions = sorted(map(Version, line.split(", ")), reverse=True)
    newest: dict[tuple[int, ...], Version] = {}
    for each in versions:
        newest.setdefault(each.release[:2], each)
    return [str(each) for each in versions if each in [*newest.values()][:3] or each in declared.specifier]


def outcome(source: str, name: str, declared: Requirement, *, slow: bool) -> Tried:
    """Install TRL from ``source``, as pip names it, and run the tests."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        python = str(folder / "bin" / "python")
        (packages,) = (folder / "lib").glob("python*/site-packages")
        present = sysconfig.get_path("purelib")
        (packages / "present.pth").write_text(f"import site; site.addsitedir({present!r})\n")  # with its .pth files
        (folder / "constraints.txt").write_text(f"torch=={version('torch')}\n")
        install = [*PIP, "--python", python, "install", "--constraint", str(folder / "constraints.txt"), source]
        subprocess.run(install, capture_output=True, text=True, check=True)
        ask = [python, "-c", "from importlib.metadata import version; print(version('trl'))"]
        installed = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        cases: list[ElementTree.Element] = []
        for tests, marks in ((FAST, "not slow and not gpu and not standin"), (SLOW, "slow"))[: 1 + slow]:
            report = folder / "report.xml"
            pytest = [python, "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", f"--junitxml={report}"]
            pytest += ["--continue-on-collection-errors", "-m", marks]
            subprocess.run([*pytest, *tests], cwd=ROOT, stdout=subprocess.DEVNULL)
            cases += ElementTree.parse(report).iter("testcase")
    causes = defaultdict(list)
    for case in cases:
        if (cause := failure(case)) is not None:
            causes[cause].append(f"{case.get('classname')}.{case.get('name')}".lstrip("."))
    return Tried(
        trl=name if name == installed else f"{name} ({installed})",
        is_declared=declared.specifier.contains(installed, prereleases=True),
        tests=len(cases),
        causes=dict(sorted(causes.items(), key=lambda each: -len(each[1]))),
    )


def failure(case: ElementTree.Element) -> str | None:
    """The error that ended a test, without its module; ``None`` where it passed."""
    ended = [each for each in case if each.tag in ("failure", "error")]
    if not ended:
        return None
    lines = re.findall(r"^E +(\S.*)", "\n".join(each.text or "" for each in ended), re.MULTILINE)
    errors = [line for line in lines if re.match(r"[\w.]+: ", line)]
    return re.sub(r"^[\w.]+\.(?=\w+: )", "", errors[-1] if errors else (lines or [str(ended[0].get("message"))])[0])


if __name__ == "__main__":
    sys.exit(main())
