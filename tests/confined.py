"""Runs a program under the seccomp profile of docs/seccomp.json, as Docker does: confined.py PROGRAM [ARGUMENT...]

Knows what the profile uses of the format, and x86-64 only."""

import ctypes
import json
import os
import re
import struct
import sys
from pathlib import Path

PROFILE = Path(__file__).resolve().parents[1] / "docs/seccomp.json"
HEADERS = [Path("/usr/include", folder, "asm/unistd_64.h") for folder in ("x86_64-linux-gnu", ".")]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, AND, JUMP_IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
X86_64 = 0xC000003E
ALLOW, ANSWER, KILL = 0x7FFF0000, 0x00050000, 0x80000000

Step = tuple[int, int, int, int]


def system_calls() -> dict[str, int]:
    """The numbers of this machine's system calls; none if it has no headers of the kernel, or another processor."""
    found = next((path for path in HEADERS if path.exists()), None)
    if found is None or os.uname().machine != "x86_64":
        return {}
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", found.read_text())}


def steps(profile: dict, numbers: dict[str, int]) -> list[Step]:
    """The filter. Like Docker, it passes over names that the machine does not know."""
    code = [(LOAD_WORD, 0, 0, ARCHITECTURE_AT), (JUMP_IF_EQUAL, 1, 0, X86_64), (RETURN, 0, 0, KILL)]
    code.append((LOAD_WORD, 0, 0, NUMBER_AT))
    for rule in profile["syscalls"]:
        action = (RETURN, 0, 0, answer(rule["action"], rule.get("errnoRet", 1)))
        for name in rule["names"]:
            if name in numbers:
                then = conditions(rule.get("args", []), action)
                code += [(JUMP_IF_EQUAL, 0, len(then), numbers[name]), *then]
    return [*code, (RETURN, 0, 0, answer(profile["defaultAction"], profile["defaultErrnoRet"]))]


def answer(action: str, number: int) -> int:
    return {"SCMP_ACT_ALLOW": ALLOW, "SCMP_ACT_ERRNO": ANSWER | number}[action]


def conditions(arguments: list[dict], action: Step) -> list[Step]:
    """The action, if the low half of an argument has none of the bits."""
    code: list[Step] = []
    for argument in arguments:
        assert argument["op"] == "SCMP_CMP_MASKED_EQ" and argument["valueTwo"] == 0
        code += [(LOAD_WORD, 0, 0, ARGUMENTS_AT + 8 * argument["index"]), (AND, 0, 0, argument["value"])]
        code += [(JUMP_IF_EQUAL, 1, 0, 0), (RETURN, 0, 0, ANSWER | 1)]
    return [*code, action]


def confine() -> None:
    """From now on, this process and its children have only the system calls of the profile."""
    filter_ = steps(json.loads(PROFILE.read_text()), system_calls())
    code = b"".join(struct.pack("HBBI", *step) for step in filter_)
    area = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(filter_), ctypes.addressof(area))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program
    ):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    confine()
    os.execvp(sys.argv[1], sys.argv[1:])
