"""What happens with the steps of a run: transformers' callbacks."""
