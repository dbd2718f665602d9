"""Leave something behind."""

for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.dirname(SECRET)):
    attempt(lambda: os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY)), folder)
    attempt(lambda: os.rmdir(os.mkdir(f"{folder}/attack") or f"{folder}/attack"), folder)
