"""How fast the parts are, and how often verifiers err: `python -m scripts.benchmarks`."""

import scripts._installed  # noqa: F401
