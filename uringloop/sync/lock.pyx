# Lock: a mutex for tasks of any loops and for plain threads. Owns who holds it, which is: somebody, or nobody.
# Strictly first come, first served. Never free while somebody waits, and never asks who releases it.
from cpython.object cimport PyObject

from uringloop._core.finished cimport FINISHED
from uringloop._core.kernel cimport ur_add_fast_method, ur_guard_lock, ur_guard_unlock
from uringloop._core.wait cimport make_entry, make_wait
from uringloop._core.waitlist cimport Waitlist, deliver, not_in_a_loop


cdef class Lock(Waitlist):
    """asyncio.Lock for tasks of any loop, and with `with lock:` for plain threads as well."""

    def __init__(self):
        self.entry = make_entry(self, None)

    cdef bint take(self) noexcept:
        if self.held:
            return False
        self.held = True
        return True

    cdef int give_back(self) except -1:
        cdef PyObject *next
        while True:
            ur_guard_lock(&self.guard)
            if not self.held:
                ur_guard_unlock(&self.guard)
                raise RuntimeError("Lock is not acquired.")
            next = self.pop()
            if next is NULL:
                self.held = False
            ur_guard_unlock(&self.guard)
            if next is NULL or deliver(next):
                return 0

    def acquire(self):
        """Await it to hold the lock; gives True."""
        return make_wait(self, True)

    def acquire_nowait(self):
        """Take it if nobody holds it; whether it was taken. From anywhere."""
        cdef bint taken
        ur_guard_lock(&self.guard)
        taken = self.take()
        ur_guard_unlock(&self.guard)
        return taken

    def acquire_sync(self, timeout=None):
        """From a plain thread: True once it is held, False after `timeout` seconds."""
        not_in_a_loop("Lock.acquire_sync()", "`async with lock`")
        return self.block(True, timeout) is True

    def release(self):
        """Let go; from anywhere. Who waits longest holds it by the time this returns, and wakes on its own loop."""
        self.give_back()

    def locked(self):
        return self.held

    def statistics(self):
        """{locked, waiting, waits, grants, cancels, passes}: of now, then since the lock was made."""
        return {"locked": bool(self.held), **self.counts()}

    def __aenter__(self):
        return self.entry

    def __enter__(self):
        not_in_a_loop("`with lock`", "`async with lock`")
        self.block(None, None)

    def __exit__(self, *exc):
        self.give_back()

    def __repr__(self):
        state = "locked" if self.held else "unlocked"
        return f"<{type(self).__name__} {state} waiting={self.waiting}>"


cdef object _aexit(object self, PyObject **args, Py_ssize_t nargs, PyObject *kwnames):
    (<Lock> self).give_back()
    return FINISHED


ur_add_fast_method(Lock, "__aexit__", <void *> _aexit, "Let go.")
