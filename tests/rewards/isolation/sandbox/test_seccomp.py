"""The filter as a kernel reads it, on both processors: by an interpreter of BPF, after the kernel's documentation."""

import errno
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenkeel.rewards.isolation.sandbox.zygote.seccomp import Instruction, instructions
from evenkeel.rewards.isolation.sandbox.zygote.syscalls import AARCH64, CONDITIONS, OWN_PID, X86_64, Architecture

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
both = pytest.mark.parametrize("machine", MACHINES)


def answer(program: list[Instruction], number: int, arguments: tuple[int, ...] = (), audit: int = 0) -> int:
    """What ``program`` returns for a system call, by the rules of classic BPF."""
    words = {0: number, 4: audit}
    for index, argument in enumerate((*arguments, 0, 0, 0, 0, 0, 0)[:6]):
        words[16 + 8 * index] = argument & 0xFFFFFFFF
        words[20 + 8 * index] = argument >> 32 & 0xFFFFFFFF
    accumulator, position = 0, 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        match code:
            case 0x20:  # BPF_LD | BPF_W | BPF_ABS
                accumulator = words[operand]
            case 0x54:  # BPF_ALU | BPF_AND | BPF_K
                accumulator &= operand
            case 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
                position += if_true if accumulator == operand else if_false
            case 0x35:  # BPF_JMP | BPF_JGE | BPF_K
                position += if_true if accumulator >= operand else if_false
            case 0x06:  # BPF_RET | BPF_K
                return operand
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def of(machine: str, name: str, *arguments: int) -> int:
    architecture = MACHINES[machine]
    return answer(instructions(machine), architecture.numbers[name], arguments, architecture.audit)


@both
def test_every_number_outside_the_table_is_refused(machine: str) -> None:
    architecture = MACHINES[machine]
    program = instructions(machine)
    permitted = {number for number in range(1000) if answer(program, number, audit=architecture.audit) == ALLOW}
    unconditional = {number for name, number in architecture.numbers.items() if name not in CONDITIONS}
    with_zero_arguments = {"open", "openat", "fcntl", "prlimit64", "sendto", "recvfrom"}
    also = {number for name, number in architecture.numbers.items() if name in with_zero_arguments}
    assert permitted == unconditional | also
    refused = {answer(program, number, audit=architecture.audit) for number in range(1000)} - {ALLOW}
    assert refused == {REFUSE, UNKNOWN}


@both
@given(number=st.integers(0, 2**32 - 1), arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 6))
def test_foreign_tables_kill_whatever_the_call(machine: str, number: int, arguments: tuple[int, ...]) -> None:
    program = instructions(machine)
    i386, arm = 0x40000003, 0x40000028
    for audit in (i386, arm, *(other.audit for name, other in MACHINES.items() if name != machine)):
        assert answer(program, number, arguments, audit) == KILL
    assert answer(program, number | 0x40000000, arguments, MACHINES[machine].audit) == KILL


THREAD, FORK, NEW_USER, NEW_NETWORK = 0x3D0F00, 0x01200011, 0x10000000, 0x40000000  # of clone
LOCAL, INTERNET, STREAM, DATAGRAM, ADDRESS = 1, 2, 1, 2, 0x7FFF00000000
READ, WRITE, CREATE, TRUNCATE, CLOSE_ON_EXEC = 0, 1, 0x40, 0x200, 0o2000000
PERMITTED = [
    ("clone", THREAD),
    ("socketpair", LOCAL, STREAM | CLOSE_ON_EXEC),
    ("sendto", 3, ADDRESS, 5, 0, 0, 0),
    ("openat", 0, 0, READ | CLOSE_ON_EXEC),
    ("openat", 0, 0, WRITE | CREATE | TRUNCATE),  # Landlock's to judge
]
REFUSED = [
    *[("clone", flags) for flags in (FORK, 17, 0, THREAD | NEW_USER, THREAD | NEW_NETWORK, 0x4111)],
    ("socketpair", INTERNET, STREAM),
    ("socketpair", LOCAL, DATAGRAM),
    ("sendto", 3, ADDRESS, 5, 0, ADDRESS, 0),
    ("sendto", 3, ADDRESS, 5, 0, 1, 0),
    ("openat", 0, 0, READ | TRUNCATE),
    ("openat", 0, 0, READ | TRUNCATE | CREATE | CLOSE_ON_EXEC),
]


@both
def test_threads_local_streams_and_reading_are_permitted_and_nothing_beside(machine: str) -> None:
    assert {call: of(machine, *call) for call in PERMITTED} == dict.fromkeys(PERMITTED, ALLOW)
    assert {call: of(machine, *call) for call in REFUSED} == dict.fromkeys(REFUSED, REFUSE)
    architecture = MACHINES[machine]
    assert answer(instructions(machine), architecture.clone3, audit=architecture.audit) == UNKNOWN


@both
@pytest.mark.parametrize("name", ["kill", "tgkill"])
def test_signals_reach_the_program_itself_only(name: str, machine: str) -> None:
    architecture = MACHINES[machine]
    filled = [
        (code, true, false, 4242 if operand == OWN_PID else operand)
        for code, true, false, operand in instructions(machine)
    ]
    assert answer(filled, architecture.numbers[name], (4242, 9), architecture.audit) == ALLOW
    for pid in (4243, 1, 0, 2**32 - 1, 2**64 - 1):
        assert answer(filled, architecture.numbers[name], (pid, 9), architecture.audit) == REFUSE


@both
@given(flags=st.integers(0, 2**32 - 1))
@example(flags=0x1)  # MSG_OOB
@example(flags=0x4142)
def test_messages_are_plain_bytes_in_order(machine: str, flags: int) -> None:
    peek, at_once, all_of_it, no_signal = 0x2, 0x40, 0x100, 0x4000  # include/linux/socket.h
    plain = flags | peek | at_once | all_of_it | no_signal == peek | at_once | all_of_it | no_signal
    for name in ("sendto", "recvfrom"):
        assert (of(machine, name, 3, 0x7FFF00000000, 5, flags, 0, 0) == ALLOW) == plain


@both
@given(word=st.integers(0, 2**64 - 1))
def test_conditions_hold_for_every_argument(machine: str, word: int) -> None:
    for name in ("fcntl", "ioctl"):
        permitted = CONDITIONS[name][0].values
        assert (of(machine, name, 0, word) == ALLOW) == (word & 0xFFFFFFFF in permitted)


@pytest.mark.parametrize(("machine", "architecture"), MACHINES.items())
def test_numbers_are_the_kernels(machine: str, architecture: Architecture) -> None:
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"{header} is not installed (package linux-libc-dev)")
    text = header.read_text().replace("__NR3264_fstatat", "__NR3264_newfstatat")
    kernel = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    assert {name: kernel.get(name) for name in architecture.numbers} == architecture.numbers
    assert architecture.clone3 == kernel["clone3"]
