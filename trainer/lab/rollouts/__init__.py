"""A run's training rollouts: streamed from disk, counted in full, and a sample of them as one page to read."""

ROLLOUTS = 400
"""Most rollouts on a page."""
