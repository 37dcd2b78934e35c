# Acquirable: the methods to acquire and release that Lock and Semaphore share. Owns nothing but
# the object that `async with` awaits.
from cpython.object cimport PyObject

from uringloop._core.lifetime.guard cimport ur_add_fast_method
from uringloop._core.handoff.ready_awaitable cimport READY_NONE
from uringloop._core.handoff.thread_wait cimport block, not_in_a_loop
from uringloop._core.handoff.wait cimport make_entry, make_wait
from uringloop._core.handoff.waitlist cimport Waitlist, take


cdef class Acquirable(Waitlist):
    """A primitive that tasks of any loop acquire with `async with`, and plain threads with `with`."""

    def __cinit__(self, *args, **options):
        self.entry = make_entry(self, None)
        self.direct = type(self).release is Acquirable.release

    def __init__(self, *, str name=None):
        self.name = name

    def acquire(self):
        """Await the result to acquire; the await returns True."""
        return make_wait(self, True)

    def acquire_nowait(self):
        """Acquire if that needs no wait; returns whether it did. May be called from any thread."""
        cdef bint taken = take(self)
        if taken:
            self.collect(True)
        return taken

    def acquire_sync(self, timeout=None):
        """Acquire in a plain thread: True once acquired, False after `timeout` seconds."""
        not_in_a_loop(f"{type(self).__name__}.acquire_sync()", "`async with`")
        return block(self, True, timeout) is True

    def release(self):
        """Release, from any thread. The longest waiter owns it by the time this returns, and wakes on its own loop."""
        self.let_go()

    cdef int let_go(self) except -1:
        """The work of release(). (The Waitlist also calls `hand_on` for a waiter that cannot use its grant.)"""
        self.hand_on()
        return 0

    def __aenter__(self):
        return self.entry

    def __enter__(self):
        not_in_a_loop(f"`with` of a {type(self).__name__}", "`async with`")
        block(self, None, None)

    def __exit__(self, *exc):
        self.release()


cdef object _aexit(object self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    if (<Acquirable> self).direct:
        (<Acquirable> self).let_go()
    else:
        self.release()
    return READY_NONE


ur_add_fast_method(Acquirable, "__aexit__", <void *> _aexit, "Release.")
