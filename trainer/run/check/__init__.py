"""What a run will do and what is wrong with it, found without loading a model's weights."""
