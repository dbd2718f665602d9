"""A paper's claim, the sweep that decides it, the answer, and a certificate of the files used."""
