"""The callbacks of a run."""
