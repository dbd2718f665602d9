"""Memory that is in no limit of address space once it is unmapped: System V, POSIX, memory files."""

IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0


def system_v():
    segment = libc("shmget", IPC_PRIVATE, 1 << 20, IPC_CREAT | 0o600)
    libc("shmctl", segment, IPC_RMID, None)


attempt(system_v, "System V")
attempt(lambda: os.close(os.open("/dev/shm/attack", os.O_CREAT | os.O_RDWR)) or os.unlink("/dev/shm/attack"), "POSIX")
attempt(lambda: libc("msgctl", libc("msgget", IPC_PRIVATE, IPC_CREAT | 0o600), IPC_RMID, None), "message queue")
attempt(lambda: libc("semctl", libc("semget", IPC_PRIVATE, 1, IPC_CREAT | 0o600), 0, IPC_RMID), "semaphore")
attempt(lambda: os.close(os.memfd_create("attack")), "memory file")
