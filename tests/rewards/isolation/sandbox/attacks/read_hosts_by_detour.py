"""Leave a permitted folder by its parent."""

attempt(lambda: open("/usr/lib/../../etc/hosts").read())
