"""What a revision is made of: which answers it compares, what its repairs are worth, and which tokens they edited.

A wrong answer y is shown to the policy beside a sibling reference y_ref and written again as ŷ; see `ibpo` for what the
outcome is used for, and trainer/step/revisions.py for the generation.
"""
