"""Subprocesses: asyncio's own transport, and a wait for the process through the ring. It works in whichever thread
the loop runs, and needs no child watcher, no signal handler and no helper thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import subprocess
from asyncio import base_subprocess
from asyncio.log import logger
from typing import TYPE_CHECKING, Any

from uringloop._core.awaitables.child import ChildOp, reap, settle, try_finish
from uringloop.inspect.creation import WarnsWithStack, creation_stack

if TYPE_CHECKING:
    from uringloop.loop import EventLoop

# Later versions of asyncio wake the process's waiters when it exits, earlier ones when its pipes have closed, too.
_WAKES_AT_EXIT = "_exit_waiters" in base_subprocess.BaseSubprocessTransport._process_exited.__code__.co_names


class SubprocessTransport(WarnsWithStack, base_subprocess.BaseSubprocessTransport):
    """asyncio's subprocess transport, started with Popen; the kernel tells it that the process has ended."""

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
        self._process = self._proc  # kept: asyncio's transport clears _proc when all pipes are closed

    def exited(self) -> bool:
        """The kernel reports that the process has ended; return whether it has. If an exception such as Ctrl-C
        interrupts this, the caller calls it again, so every step must be either done or not begun."""
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
        # For example, no descriptor was left for a pidfd: the loop would never learn that the process ended.
        try:
            await waiter  # until the pipes have transports, which close() closes
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
