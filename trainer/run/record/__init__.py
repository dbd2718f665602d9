"""A run's directory: each fact of it is written and read in one place."""
