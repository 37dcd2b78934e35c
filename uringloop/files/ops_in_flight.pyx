# OpsInFlight: the operations of one open file that the kernel works on. One at a time moves the position, and stays
# `current` after its call was cancelled: when it ends, the cursor accounts for the bytes it has moved, so that no byte is
# lost, doubled or out of order. Others run apart, in any number. Each operation keeps this object alive, and so the
# cursor and the descriptor, also when the program has dropped the file. Starts no operation by itself.
from asyncio.events import _get_running_loop

from uringloop._core.awaitables.file_op cimport FileOp, OpOwner
from uringloop._core.engine.op cimport OP_IDLE
from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop.files.cursor cimport Cursor

cdef object _running_loop = _get_running_loop


cdef class OpsInFlight(OpOwner):
    def __del__(self):
        # The file is gone, and so is its last operation. Not in __dealloc__: by then, the collector has cleared the fields
        # of an object that was part of a cycle.
        if self.cursor is not None and self.current is None:
            self.cursor.finish_dropped()

    cdef bint any(self) noexcept:
        return self.current is not None or self.apart != 0

    async def run(self, FileOp op, int moves):
        """Run the operation of the call that has its turn, and return its result. If the call is cancelled, the operation
        stays `current` until it ends."""
        op.owner = self
        self.current = op
        self.current_moves = moves
        try:
            res = await op
        except OSError:
            self.current = None  # the error is the operation's result
            raise
        except BaseException:
            if op.state == OP_IDLE and not op.done:
                self.current = None  # never submitted
            raise
        self.current = None
        return res

    # Operations that need no turn

    cdef int begin_apart(self, FileOp op) except -1:
        """The operation is awaited next. It counts until end_apart(), or until it ends in the kernel."""
        op.owner = self
        self.apart += 1
        return 0

    cdef int leave_apart(self, FileOp op) except -1:
        """Awaiting the operation raised: it counts on if it is in the kernel."""
        if op.state == OP_IDLE and not op.done:
            self.apart -= 1
        return 0

    cdef int end_apart(self) except -1:
        self.apart -= 1
        return self.wake()

    # Ends

    cdef int op_ended(self, FileOp op) except -1:
        if op is self.current:
            self.current = None
            if op.res > 0:
                self.cursor.account(self.current_moves, op.memory_owner, op.res)
        else:
            self.apart -= 1
        return self.wake()

    cdef int loop_closed(self) noexcept:
        """close() of the loop has ended the operations that run apart without telling this object."""
        self.apart = 0
        return 0

    cdef int wake(self) except -1:
        freed, self.freed = self.freed, None
        if freed is not None and not freed.done():
            freed.set_result(None)
        return 0

    async def until_ended(self):
        """Wait until an operation has ended: one that a cancelled call left in the kernel, or one that needs no turn."""
        if self.current is not None and self.current.loop.closed:
            self.op_ended(self.current)  # close() of the loop has ended it without telling this object
            return
        self.freed = _running_loop().create_future()
        await self.freed

    async def until_none(self):
        while self.current is not None or self.apart:
            await self.until_ended()


cdef OpsInFlight make_ops_in_flight(Cursor cursor):
    cdef OpsInFlight ops = OpsInFlight.__new__(OpsInFlight)
    ops.cursor = cursor
    return ops


ur_only_core_makes(OpsInFlight)
