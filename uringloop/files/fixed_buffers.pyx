# FixedBuffers: buffers that the kernel has pinned, lent to tasks. Owns the list of free buffers and the tasks that wait
# for one. A buffer returns by itself, once no view of it and no operation on it is left; FixedMemory owns the memory.
cimport cython
from libc.stdlib cimport free, malloc

import errno
import os
import resource

from uringloop._core.engine.fixed_buffer cimport FixedBuffer, FixedMemory, make_fixed_memory
from uringloop._core.kernel.libc cimport ENOBUFS, ENOMEM
from uringloop._core.loop.loop cimport Loop
from uringloop._core.lifetime.guard cimport ur_guard_lock, ur_guard_unlock, ur_only_core_makes
from uringloop._core.handoff.wait cimport make_wait
from uringloop._core.handoff.waitlist cimport Waitlist, take
from uringloop.errors import NotInitialised
from uringloop.files.loops import running_loop

cdef enum:
    PAGE = 4096

# The most that the kernel pins in one piece.
cdef Py_ssize_t MOST_BYTES = 1 << 30


class BuffersClosed(RuntimeError):
    """The FixedBuffers are closed. Made anew each time, because an exception keeps the frames it was raised in."""

    def __init__(self):
        super().__init__("the buffers are closed")


cdef class FixedBuffers(Waitlist):
    """`count` buffers of `size` bytes, pinned for the running loop's ring, so that the kernel need not map the memory of
    each read and write anew. On a loop without a ring they are ordinary memory."""

    def __cinit__(self, *args, **options):
        self.refusal = NotInitialised

    def __init__(self, Py_ssize_t count, Py_ssize_t size):
        cdef Loop loop = running_loop()
        cdef int err = 0
        if self.numbers is not NULL:
            raise RuntimeError("FixedBuffers are made once")
        if count < 1 or size < 1:
            raise ValueError("count and size must be positive")
        stride = (min(size, MOST_BYTES) + PAGE - 1) // PAGE * PAGE
        if count > MOST_BYTES // stride or size > MOST_BYTES:
            raise ValueError("FixedBuffers hold no more than 1 GiB")
        self.numbers = <int *> malloc(count * sizeof(int))
        if self.numbers is NULL:
            raise MemoryError
        self.count = count
        self.size = size
        self.stride = stride
        self.memory = make_fixed_memory(loop.engine, count * stride, &err)
        if err < 0:
            self.memory = None
            raise _refused(-err, count * stride)
        for i in range(count):
            self.numbers[i] = count - 1 - i
        self.back = self.free = count
        self.refusal = None

    def __dealloc__(self):
        free(self.numbers)

    cdef bint try_acquire(self) noexcept:
        if self.memory is None or self.free == 0:
            return False
        self.free -= 1
        return True

    cdef object collect(self, object value):
        """Take one of the free buffers, which was promised to the caller; return a view of it."""
        cdef LentBuffer lent = LentBuffer.__new__(LentBuffer)
        cdef FixedMemory memory
        ur_guard_lock(&self.guard)
        memory = self.memory
        if memory is not None:
            self.back -= 1
            lent.number = self.numbers[self.back]
        ur_guard_unlock(&self.guard)
        if memory is None:
            raise self.refusal
        lent.memory = memory
        lent.data = memory.data + lent.number * self.stride
        lent.size = self.size
        lent.lender = self
        return memoryview(lent)

    cdef str wait_name(self):
        return "FixedBuffers.lend"

    cdef bint put_back(self) noexcept:
        self.free += 1
        return True

    cdef void came_back(self, int number) noexcept:
        """The last reference to a buffer is gone; called from any thread."""
        ur_guard_lock(&self.guard)
        self.numbers[self.back] = number
        self.back += 1
        ur_guard_unlock(&self.guard)
        self.hand_on()

    def lend(self):
        """Await this for a writable memoryview of a buffer. If all are lent, tasks wait in line for one. The buffer holds
        what its last user left in it. `with await buffers.lend() as view:` returns it at the end of the block."""
        return make_wait(self, None)

    def lend_nowait(self):
        """Return a memoryview of a buffer at once; raise BlockingIOError if all are lent."""
        if take(self):
            return self.collect(None)
        if self.memory is None:
            raise self.refusal
        raise BlockingIOError(errno.EAGAIN, "every buffer is lent")

    def close(self):
        """Stop lending. Waiting tasks get a RuntimeError. The memory is freed once all lent buffers have come back."""
        cdef FixedMemory memory
        self.close_line(BuffersClosed)
        ur_guard_lock(&self.guard)
        memory, self.memory = self.memory, None
        ur_guard_unlock(&self.guard)

    @property
    def closed(self):
        return self.memory is None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def statistics(self):
        """Return a dict of count, size, lent, registered, transfers, and, since it was made, waits, grants, cancels and
        passes. `transfers` is the number of operations that used a registered buffer."""
        cdef FixedMemory memory = self.memory
        return {"count": self.count, "size": self.size, "lent": self.count - self.back,
                "registered": memory is not None and memory.registered,
                "transfers": 0 if memory is None else memory.transfers, **self.counts()}

    def __repr__(self):
        state = "closed" if self.memory is None else f"{self.count - self.back} lent, {self.waiting} waiting"
        return f"<FixedBuffers {self.count} x {self.size} bytes, {state}>"


@cython.no_gc_clear  # __dealloc__ needs `lender`
cdef class LentBuffer(FixedBuffer):
    def __dealloc__(self):
        if self.lender is not None:
            self.lender.came_back(self.number)


cdef object _refused(int number, Py_ssize_t size):
    text = f"pinning {size} bytes: {os.strerror(number)}"
    if number == ENOMEM:
        limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        text += f" (RLIMIT_MEMLOCK, `ulimit -l`, is {limit} bytes for all that a user's programs have pinned)"
    elif number == ENOBUFS:
        text += " (no more than 1024 FixedBuffers on one event loop)"
    return OSError(number, text)


ur_only_core_makes(LentBuffer)
