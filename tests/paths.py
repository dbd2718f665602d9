"""Where the tests find the checkout, and real data beside it."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
SHARED_DATA = ROOT.parent / "shared" / "data"
"""Published rows that some checkouts have beside them; tests that use them skip where they are absent."""
