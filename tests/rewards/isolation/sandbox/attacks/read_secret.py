"""Read a file of the trainer's."""

attempt(lambda: open(SECRET).read())
