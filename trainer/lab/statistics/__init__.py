"""Statistics over seeds: pure functions of arrays, numpy and scipy alone.

Shapes: S seeds (runs of one variant), I evaluation items, P evaluated points of a run.
NaN: an unscored item, or a value that a run does not have.
"""
