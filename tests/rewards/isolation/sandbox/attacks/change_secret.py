"""What Landlock does not cover: modes, owners, times, attributes, names."""

attempt(lambda: os.chmod(SECRET, 0o777), "chmod")
attempt(lambda: os.chown(SECRET, -1, -1), "chown")
attempt(lambda: os.utime(SECRET), "utime")
attempt(lambda: os.rename(SECRET, SECRET), "rename")
attempt(lambda: os.link(SECRET, SECRET + ".link"), "link")
attempt(lambda: os.symlink(SECRET, SECRET + ".symlink"), "symlink")
attempt(lambda: os.mkfifo(SECRET + ".fifo"), "mkfifo")
attempt(lambda: os.unlink(SECRET_COPY), "unlink")
