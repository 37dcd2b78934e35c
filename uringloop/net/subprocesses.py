"""Subprocesses: asyncio's own transport around subprocess.Popen, and a wait for the process that goes through
the ring, in whichever thread the loop runs. No child watcher, no signal handler, no thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import subprocess
from asyncio import base_subprocess
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from uringloop._core.child import ChildOp
from uringloop.inspect.made import SaysWhere, stack_here

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

# What asyncio reports when somebody else has taken the exit status.
_STATUS_TAKEN = 255


def reap(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a process that is said to have ended, None if it has not.

    Under Popen's own lock, and left in the Popen: `poll()` in another thread, or in a transport's `close()`,
    may have been faster."""
    with process._waitpid_lock:  # type: ignore[attr-defined]
        if process.returncode is None:
            try:
                pid, status = os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                logger.warning(
                    "child process pid %d exit status already read: will report returncode %d",
                    process.pid,
                    _STATUS_TAKEN,
                )
                process.returncode = _STATUS_TAKEN
            else:
                if pid == 0:
                    return None
                process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode


class SubprocessTransport(SaysWhere, base_subprocess.BaseSubprocessTransport):
    """asyncio's, with a Popen, and with the word of the kernel that the process has ended."""

    _proc: subprocess.Popen[bytes] | None
    _returncode: int | None

    def _start(
        self, args: Any, shell: bool, stdin: Any, stdout: Any, stderr: Any, bufsize: int, **kwargs: Any
    ) -> None:
        self._proc = subprocess.Popen(
            args,
            shell=shell,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            universal_newlines=False,
            bufsize=bufsize,
            **kwargs,
        )
        self._process = self._proc  # stays: the transport drops its own when all pipes are closed

    def exited(self) -> bool:
        """The process has ended, says the kernel. True if so."""
        returncode = reap(self._process)
        if returncode is None:
            return False
        self._process_exited(returncode)
        return True


async def make_subprocess_transport(
    loop: EventLoop,
    protocol: Any,
    args: Any,
    shell: bool,
    stdin: Any,
    stdout: Any,
    stderr: Any,
    bufsize: int,
    extra: Any = None,
    **kwargs: Any,
) -> SubprocessTransport:
    waiter = loop.create_future()
    transport = SubprocessTransport(
        loop, protocol, args, shell, stdin, stdout, stderr, bufsize, waiter=waiter, extra=extra, **kwargs
    )
    transport.made_at = stack_here(loop)
    try:
        exited = functools.partial(contextvars.copy_context().run, transport.exited)
        pid = transport.get_pid()
        assert pid is not None
        ChildOp(loop, pid, exited).start()
    except BaseException:
        # No descriptor for a pidfd, say. Nobody would ever know of its end.
        transport.close()
        transport._process.wait()
        waiter.cancel()
        raise
    try:
        await waiter
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        transport.close()
        await asyncio.shield(transport._wait())
        raise
    return transport
