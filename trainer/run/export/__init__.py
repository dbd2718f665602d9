"""A trained policy taken out of its run: whole weights, tokenizer, how it samples, and a card that says what it is."""
