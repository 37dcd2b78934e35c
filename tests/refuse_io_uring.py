"""Runs Python code where a seccomp filter refuses io_uring: refuse_io_uring.py ERRNO -c CODE [ARGUMENT...]

KILL in place of an errno's name: who asks for io_uring is killed by SIGSYS."""

import ctypes
import errno
import struct
import sys

IO_URING = (425, 426, 427)  # setup, enter, register: the same numbers on every architecture
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ANSWER, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def refuse(action: int) -> None:
    """Let the kernel do this about io_uring's system calls in this process from now on."""
    steps = [(LOAD_WORD, 0, 0, 0)]  # the system call's number
    for i, call in enumerate(IO_URING):
        steps.append((JUMP_IF_EQUAL, len(IO_URING) - i, 0, call))
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, action)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    area = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(area))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program
    ):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    name, flag, source, *arguments = sys.argv[1:]
    assert flag == "-c", flag
    refuse(KILL if name == "KILL" else ANSWER | getattr(errno, name))
    sys.argv = ["-c", *arguments]
    exec(compile(source, "<program>", "exec"), {"__name__": "__main__"})
