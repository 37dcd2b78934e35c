"""Subprocesses: asyncio's own transport around subprocess.Popen, and a wait for the process that goes through
the ring, in whichever thread the loop runs. No child watcher, no signal handler, no thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
from asyncio import base_subprocess
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from uringloop._core.awaited.child import ChildOp, reap, settle, try_finish
from uringloop.inspect.creation import WarnsWithStack, creation_stack

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

# Later versions of asyncio wake who waits for the process when it ends, others when its pipes have ended too.
_WAKES_AT_EXIT = "_exit_waiters" in base_subprocess.BaseSubprocessTransport._process_exited.__code__.co_names


class SubprocessTransport(WarnsWithStack, base_subprocess.BaseSubprocessTransport):
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
        """The process has ended, says the kernel. True if so. What an interrupt ends is called again: each step is then
        done or not begun."""
        if self._finished:
            return True
        returncode, taken = reap(self._process)
        if returncode is None:
            return False
        settle(self, returncode)
        if taken:
            logger.warning(
                "child process pid %d exit status already read: will report returncode %d",
                self._process.pid,
                returncode,
            )
        if self._loop.get_debug():
            logger.info("%r exited with return code %r", self, returncode)
        if _WAKES_AT_EXIT:
            for waiter in self._exit_waiters or ():
                if not waiter.done():
                    waiter.set_result(returncode)
            self._exit_waiters = None  # type: ignore[assignment]
        self._try_finish()
        return True

    def _try_finish(self) -> None:
        try_finish(self)


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
    transport.made_at = creation_stack(loop)
    try:
        exited = functools.partial(contextvars.copy_context().run, transport.exited)
        pid = transport.get_pid()
        assert pid is not None
        ChildOp(loop, pid, exited).start()
    except BaseException:
        # No descriptor for a pidfd, say: the loop would never learn of its end.
        try:
            await waiter  # until its pipes are transports, which close() closes
        finally:
            transport.close()
            transport._process.wait()
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
