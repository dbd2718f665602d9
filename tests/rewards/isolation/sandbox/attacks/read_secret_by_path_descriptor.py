"""Open a folder as a mere path first, then a file beneath it."""

attempt(lambda: os.open(os.path.basename(SECRET), os.O_RDONLY, dir_fd=os.open(os.path.dirname(SECRET), os.O_PATH)))
