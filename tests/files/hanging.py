"""A filesystem that answers only as long as it is told to, spoken by hand over /dev/fuse. For root."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from pathlib import Path

GETATTR, OPEN, READ, INIT, LOOKUP, FORGET, BATCH_FORGET, RELEASE, FLUSH, INTERRUPT = (
    3,
    14,
    15,
    26,
    1,
    2,
    42,
    18,
    25,
    36,
)
HEADER = struct.Struct("=IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
ANSWER = struct.Struct("=IiQ")
CONTENT = b"from a slow place"


def attributes(node: int) -> bytes:
    mode, size = (0o40755, 0) if node == 1 else (0o100644, len(CONTENT))
    return struct.pack("=QQQQQQIIIIIIIIII", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class HangingFilesystem:
    """Has one file, `file`. While `hangs` is set, nothing is answered until it is cleared."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.fd = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"slow", os.fsencode(place), b"fuse", 0, options):
            number = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(number, os.strerror(number))
        self.answers = threading.Event()
        self.answers.set()
        self.asked: list[int] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                return  # unmounted
            _, opcode, unique, node, *_ = HEADER.unpack_from(request)
            self.asked.append(opcode)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            self.answers.wait()
            error, body = self.answer(opcode, node, request[HEADER.size :])
            try:
                os.write(self.fd, ANSWER.pack(ANSWER.size + len(body), -error, unique) + body)
            except OSError:
                continue  # it was interrupted meanwhile

    def answer(self, opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
        if opcode == INIT:
            return 0, struct.pack(
                "=IIIIHHIIHHIIII", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0, 0, 0, 0
            ) + bytes(16)
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"file":
                return 2, b""
            return 0, struct.pack("=QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        if opcode == GETATTR:
            return 0, struct.pack("=QII", 3600, 0, 0) + attributes(node)
        if opcode == OPEN:
            return 0, struct.pack("=QII", 1, 1, 0)  # direct_io: nothing of it is cached
        if opcode == READ:
            offset, size = struct.unpack_from("=QI", body, 8)
            return 0, CONTENT[offset : offset + size]
        return (0, b"") if opcode in (RELEASE, FLUSH) else (38, b"")

    def close(self) -> None:
        self.answers.set()
        ctypes.CDLL(None).umount2(os.fsencode(self.place), 2)
        os.close(self.fd)
        self.thread.join(10)
