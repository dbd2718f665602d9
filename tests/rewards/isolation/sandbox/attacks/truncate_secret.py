"""Empty a file: by name, and by opening it for reading."""

attempt(lambda: os.truncate(SECRET, os.stat(SECRET).st_size))
attempt(lambda: os.open(SECRET_COPY, os.O_RDONLY | os.O_TRUNC))
