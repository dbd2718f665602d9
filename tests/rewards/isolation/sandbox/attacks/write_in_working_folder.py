"""A file under a relative name."""

attempt(lambda: os.remove(open("attack.txt", "w").name))
