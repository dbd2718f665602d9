"""Every dangerous call of x86-64, with arguments that do nothing. Refused means EPERM, not any other complaint."""

# machine: x86_64
import errno

BAD = -1
OF_NOTHING = """
    socket=41 execve=59 pidfd_open=434 tkill=200 rt_sigqueueinfo=129 rt_tgsigqueueinfo=297 mount=165 umount2=166
    pivot_root=155 chroot=161 fsopen=430 perf_event_open=298 io_uring_setup=425 io_setup=206 add_key=248
    request_key=249 shmget=29 mq_open=240 truncate=76 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87
    symlink=88 chmod=90 chown=92 setxattr=188 mknod=133 init_module=175 delete_module=176 quotactl=179 swapon=167
    reboot=169 sched_setaffinity=203 capset=126
"""
OF_A_BAD_DESCRIPTOR = """
    connect=42 accept=43 bind=49 listen=50 sendmsg=46 recvmsg=47 sendmmsg=307 setsockopt=54 execveat=322
    pidfd_getfd=438 pidfd_send_signal=424 setns=308 open_tree=428 mount_setattr=442 openat2=437
    name_to_handle_at=303 open_by_handle_at=304 io_uring_enter=426 shmat=30 msgget=68 flock=73 vmsplice=278
    fchmod=91 fchmodat2=452 ioperm=173 finit_module=313 setpgid=109 migrate_pages=256
"""
OF_AN_UNKNOWN_NUMBER = """
    ptrace=101 bpf=321 keyctl=250 syslog=103 clock_settime=227 setpriority=141 seccomp=317 timer_create=222
"""
OF_UNKNOWN_FLAGS = "memfd_secret=447 userfaultfd=323 inotify_init1=294 fanotify_init=300"
CALLS = {
    "process_vm_readv": (310, 0, 0, 0, 0, 0, 1),
    "process_vm_writev": (311, 0, 0, 0, 0, 0, 1),
    "process_madvise": (440, BAD, 0, 0, 0, 1),
    "kcmp": (312, 0, 0, 99, 0, 0),
    "unshare": (272, 0x80000001),
    "move_mount": (429, BAD, 0, BAD, 0, 0),
    "semget": (64, 0, BAD, 0),
    "memfd_create": (319, 0, 0x7FFFFFFF),
    "splice": (275, BAD, 0, BAD, 0, 0, 0),
    "utimensat": (280, BAD, 0, 0, 0x7FFFFFFF),
    "settimeofday": (164, 1, 0),
    "sethostname": (170, 0, BAD),
    "personality": (135, 0xFFFFFFFF),
    "sched_setscheduler": (144, 0, 99, 0),
    "setuid": (105, 0xFFFFFFFF),
    "landlock_create_ruleset": (444, 0, 0, 99),
    "mbind": (237, 1, 0, 0, 0, 0, 0),
    "mlock": (149, 1, BAD),
    "mseal": (462, 1, 0, 99),
}
FIRST = {OF_NOTHING: 0, OF_A_BAD_DESCRIPTOR: BAD, OF_AN_UNKNOWN_NUMBER: 99, OF_UNKNOWN_FLAGS: 0x7FFFFFFF}
for text, first in FIRST.items():
    numbers = dict(entry.split("=") for entry in text.split())
    CALLS |= {name: (int(number), first, 0, 0, 0, 0, 0) for name, number in numbers.items()}
for name, arguments in CALLS.items():
    try:
        system_call(*arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS):
            continue
    hit(name)
