"""The files in a run's directory, written and read in one place each."""
