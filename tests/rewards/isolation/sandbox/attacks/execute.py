"""Start a program."""

import subprocess

attempt(lambda: subprocess.run(["/bin/true"], check=True))
attempt(lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt(lambda: os.popen("true").close())
if os.system("true") == 0:
    hit("system")
