"""A paper's claim, the sweep that decides it, the answer, and a certificate of the files used.

claim         the YAML file
answering     from finished runs to the answer (the rule: `trainer.lab.statistics.claim`), with its cost
certificate   hashes of configs, data, code and results, and what has changed since
"""
