"""Plan and problems of a run, found without loading a model's weights."""
