"""End the trainer, the zygote, everyone. Signal 0 asks only whether it would be permitted."""

import signal

for pid in (TRAINER, os.getppid(), 1, 0, -1):
    attempt(lambda: os.kill(pid, 0), pid)
attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(TRAINER), 0), "pidfd")
attempt(lambda: libc("tgkill", TRAINER, TRAINER, 0), "tgkill")
attempt(lambda: libc("sigqueue", TRAINER, 0, None), "sigqueue")
attempt(lambda: os.killpg(os.getpgid(TRAINER), 0), "killpg")
