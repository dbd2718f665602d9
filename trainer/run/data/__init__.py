"""Rows to train on: the sources of a configuration as datasets."""
