"""Every script runs this first: a Python without this project's packages is refused, with the command to write."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MISSING = [name for name in ("torch", "transformers", "trl", "datasets", "pydantic", "evenkeel") if not find_spec(name)]

if MISSING:
    python = ROOT / ".venv" / "bin" / "python"
    first = "" if python.exists() else f"bash {shlex.quote(str(ROOT / 'scripts' / 'quickstart.sh'))} makes it; then: "
    sys.stderr.write(
        f"{sys.executable} (Python {sys.version.split()[0]}) has no package {MISSING[0]}: this project is installed in "
        f"its virtual environment, {ROOT / '.venv'}. Write: {first}{shlex.join([str(python), *sys.orig_argv[1:]])}\n"
    )
    sys.exit(2)
