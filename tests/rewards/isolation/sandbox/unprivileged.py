"""Run the attacks as another user: ``python unprivileged.py CHECKOUT FOLDER`` writes what came of each as JSON.

Needs nothing but the standard library, so that a system's own python will do: ``evenkeel.rewards`` itself imports
more, its sandbox does not.
"""

import json
import sys
import types
from pathlib import Path

checkout, folder = sys.argv[1:]
sys.path.insert(0, checkout)
for name, part in (("evenkeel", checkout), ("evenkeel.rewards", f"{checkout}/rewards")):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [part]

from evenkeel.rewards.isolation.sandbox import Job, Sandbox  # noqa: E402
from tests.rewards.isolation.sandbox.attack import ATTACKS, SECRET_WORD, targets  # noqa: E402

with targets(Path(folder)) as prey, Sandbox(preimported=(), slots=2) as sandbox:
    fitting = [attack for attack in ATTACKS if attack.fits]
    runs = sandbox.run_all(
        Job(attack.source({**prey, "SECRET_WORD": SECRET_WORD}), limits=attack.limits) for attack in fitting
    )
    secrets = {Path(prey["SECRET"]).read_text(), Path(prey["SECRET_COPY"]).read_text()}
report = [
    {"attack": attack.name, "status": run.status, "wanted": attack.ends, "stdout": run.stdout.decode(errors="replace")}
    for attack, run in zip(fitting, runs, strict=True)
]
sys.stdout.write(json.dumps({"runs": report, "unharmed": secrets == {SECRET_WORD}}))
