"""Secrets that the trainer's environment holds."""

# unconfined: skip, no level passes the environment on
if SECRET_WORD in str(dict(os.environ)) + str(dict(os.environb)):
    hit()
