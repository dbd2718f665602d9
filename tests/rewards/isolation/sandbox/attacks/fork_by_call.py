"""clone without CLONE_THREAD, with namespaces, and vfork."""

# machine: x86_64
SIGCHLD, CLONE_NEWUSER = 17, 0x10000000
CALLS = {
    "fork": (57,),
    "clone": (56, SIGCHLD, 0, 0, 0, 0),
    "clone into a user namespace": (56, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0),
}
for name, arguments in CALLS.items():
    try:
        pid = system_call(*arguments)
    except OSError:
        continue
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    hit(name)
