"""Look round at home."""

attempt(lambda: os.listdir(HOME))
attempt(lambda: os.listdir("/"))
