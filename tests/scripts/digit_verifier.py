"""A user's own verifier, for the tests that launch whole runs: right when at least half of the words are digits."""

from typing import Any

from evenkeel.rewards import Verdict


def share_of_digits(completion: str, reference: Any) -> Verdict:
    """Scored by the completion alone."""
    words = completion.split()
    share = sum(word.isdigit() for word in words) / max(len(words), 1)
    return Verdict(float(share >= 0.5), None, f"{share:.2f} of the words are digits")
