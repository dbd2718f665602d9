"""The system calls that a sandboxed program may make: names, their numbers by architecture, conditions on arguments.

Calls that are not in these tables are refused, also those that a future kernel adds. Numbers are those of the kernel's
``unistd_64.h`` (x86-64) and ``asm-generic/unistd.h`` (aarch64); a kernel never changes them.
"""

from dataclasses import dataclass


def _numbers(table: str) -> dict[str, int]:
    """``"read=0 write=1"`` as a mapping."""
    return {name: int(number) for name, _, number in (entry.partition("=") for entry in table.split())}


@dataclass(frozen=True)
class Architecture:
    """A processor's system calls, for the filter.

    Attributes:
        audit: its ``AUDIT_ARCH_*`` constant; another one means foreign system calls.
        numbers: the permitted calls.
        clone3: refused as not implemented, so that glibc starts threads by ``clone``.
    """

    audit: int
    numbers: dict[str, int]
    clone3: int = 435


X86_64 = Architecture(
    0xC000003E,
    _numbers("""
    read=0 write=1 readv=19 writev=20 pread64=17 pwrite64=18 preadv=295 pwritev=296 preadv2=327 pwritev2=328
    lseek=8 open=2 openat=257 close=3 close_range=436 dup=32 dup2=33 dup3=292 stat=4 fstat=5 lstat=6
    newfstatat=262 statx=332 statfs=137 fstatfs=138 access=21 faccessat=269 faccessat2=439 readlink=89
    readlinkat=267 getdents=78 getdents64=217 getcwd=79 chdir=80 fchdir=81 umask=95 ftruncate=77
    fsync=74 fdatasync=75 fadvise64=221 pipe=22 pipe2=293 poll=7 ppoll=271 select=23 pselect6=270
    epoll_create=213 epoll_create1=291 epoll_ctl=233 epoll_wait=232 epoll_pwait=281 epoll_pwait2=441 eventfd=284
    eventfd2=290 sendto=44 recvfrom=45 shutdown=48 getsockopt=55 getsockname=51 getpeername=52 brk=12 mmap=9
    munmap=11 mprotect=10 mremap=25 madvise=28 mincore=27 msync=26 membarrier=324 futex=202 futex_waitv=449
    set_robust_list=273 set_tid_address=218 rseq=334 sched_yield=24 sched_getaffinity=204 getcpu=309 gettid=186
    getpid=39 getppid=110 getpgrp=111 getpgid=121 getsid=124 getuid=102 geteuid=107 getgid=104 getegid=108
    getresuid=118 getresgid=120 getgroups=115 exit=60 exit_group=231 restart_syscall=219 rt_sigaction=13
    rt_sigprocmask=14 rt_sigreturn=15 rt_sigpending=127 rt_sigsuspend=130 rt_sigtimedwait=128 sigaltstack=131
    pause=34 alarm=37 getitimer=36 setitimer=38 nanosleep=35 clock_nanosleep=230 clock_gettime=228
    clock_getres=229 gettimeofday=96 time=201 times=100 timerfd_create=283 timerfd_settime=286
    timerfd_gettime=287 getrlimit=97 getrusage=98 sysinfo=99 uname=63 getrandom=318 arch_prctl=158 socketpair=53
    clone=56 fcntl=72 ioctl=16 prctl=157 prlimit64=302 kill=62 tgkill=234
    """),
)

AARCH64 = Architecture(
    0xC00000B7,
    _numbers("""
    read=63 write=64 readv=65 writev=66 pread64=67 pwrite64=68 preadv=69 pwritev=70 preadv2=286 pwritev2=287
    lseek=62 openat=56 close=57 close_range=436 dup=23 dup3=24 fstat=80 newfstatat=79 statx=291 statfs=43
    fstatfs=44 faccessat=48 faccessat2=439 readlinkat=78 getdents64=61 getcwd=17 chdir=49 fchdir=50 umask=166
    ftruncate=46 fsync=82 fdatasync=83 fadvise64=223 pipe2=59 ppoll=73 pselect6=72 epoll_create1=20
    epoll_ctl=21 epoll_pwait=22 epoll_pwait2=441 eventfd2=19 sendto=206 recvfrom=207 shutdown=210 getsockopt=209
    getsockname=204 getpeername=205 brk=214 mmap=222 munmap=215 mprotect=226 mremap=216 madvise=233 mincore=232
    msync=227 membarrier=283 futex=98 futex_waitv=449 set_robust_list=99 set_tid_address=96 rseq=293
    sched_yield=124 sched_getaffinity=123 getcpu=168 gettid=178 getpid=172 getppid=173 getpgid=155 getsid=156
    getuid=174 geteuid=175 getgid=176 getegid=177 getresuid=148 getresgid=150 getgroups=158 exit=93
    exit_group=94 restart_syscall=128 rt_sigaction=134 rt_sigprocmask=135 rt_sigreturn=139 rt_sigpending=136
    rt_sigsuspend=133 rt_sigtimedwait=137 sigaltstack=132 getitimer=102 setitimer=103 nanosleep=101
    clock_nanosleep=115 clock_gettime=113 clock_getres=114 gettimeofday=169 times=153 timerfd_create=85
    timerfd_settime=86 timerfd_gettime=87 getrlimit=163 getrusage=165 sysinfo=179 uname=160 getrandom=278
    socketpair=199 clone=220 fcntl=25 ioctl=29 prctl=167 prlimit64=261 kill=129 tgkill=131
    """),
)

ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
"""By ``platform.machine()``. Other processors have no filter, and so no sandbox."""

X32_BIT = 0x40000000
"""Set in the numbers of the x32 calls, a second table of x86-64 that would pass every other check."""

NEWEST = 460
"""Calls above it are refused as not implemented, as by an old kernel, so that libraries use older calls."""

OWN_PID = -1
"""Stands for the process id, which is known only after the fork."""


@dataclass(frozen=True)
class Condition:
    """Permits a call only where ``word & mask`` is one of ``values``.

    The kernel shows a filter the six arguments as twelve 32-bit words: low word of argument i is 2i, high word 2i + 1.
    Pointers are never followed.
    """

    word: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


_THREAD_OF_GLIBC, _THREAD_OF_MUSL = 0x3D0F00, 0x7D0F00
_READ_ONLY_BUT_TRUNCATE = 0x200
_OPEN_MODES = tuple(mode for mode in (*range(4), *range(0x200, 0x204)) if mode != _READ_ONLY_BUT_TRUNCATE)
_AF_UNIX, _SOCK_STREAM, _SOCK_NONBLOCK, _SOCK_CLOEXEC = 1, 1, 0o4000, 0o2000000
_MSG_PEEK, _MSG_DONTWAIT, _MSG_WAITALL, _MSG_NOSIGNAL = 0x2, 0x40, 0x100, 0x4000
_OTHER_MESSAGE_FLAGS = 0xFFFFFFFF & ~(_MSG_PEEK | _MSG_DONTWAIT | _MSG_WAITALL | _MSG_NOSIGNAL)
_STREAMS = tuple(_SOCK_STREAM | flags for flags in (0, _SOCK_NONBLOCK, _SOCK_CLOEXEC, _SOCK_NONBLOCK | _SOCK_CLOEXEC))

CONDITIONS: dict[str, tuple[Condition, ...]] = {
    # A thread and nothing else: no process, no namespace.
    "clone": (Condition(0, (_THREAD_OF_GLIBC, _THREAD_OF_MUSL)),),
    # Landlock before Linux 6.2 takes truncation for reading.
    "open": (Condition(2, _OPEN_MODES, mask=0x203),),
    "openat": (Condition(4, _OPEN_MODES, mask=0x203),),
    # Duplicates, flags and status; no F_SETOWN (signals to others), no leases, locks, larger pipes.
    "fcntl": (Condition(2, (0, 1, 2, 3, 4, 1030, 1032, 1034)),),
    # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX.
    "ioctl": (Condition(2, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),),
    # PR_SET_NAME, PR_GET_NAME, PR_SET_VMA.
    "prctl": (Condition(0, (15, 16, 0x53564D41)),),
    "prlimit64": (Condition(0, (0, OWN_PID)),),
    "kill": (Condition(0, (OWN_PID,)),),
    "tgkill": (Condition(0, (OWN_PID,)),),
    # asyncio wakes itself through one; a stream has no address to send to.
    "socketpair": (Condition(0, (_AF_UNIX,)), Condition(2, _STREAMS)),
    # No out-of-band bytes (MSG_OOB), whose handling by Unix sockets has had faults a program could use on the kernel.
    "sendto": (Condition(6, (0,), _OTHER_MESSAGE_FLAGS), Condition(8, (0,)), Condition(9, (0,))),
    "recvfrom": (Condition(6, (0,), _OTHER_MESSAGE_FLAGS),),
}
"""All conditions of a call must hold."""
