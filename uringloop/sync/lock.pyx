# Lock: a mutex for tasks of any loops and for plain threads. Owns whether somebody holds it, not who: any
# task or thread may release it, as asyncio's. Strictly first come, first served; never free while one waits.
from cpython.object cimport PyObject

from uringloop._core.kernel cimport ur_guard_lock, ur_guard_unlock
from uringloop._core.waitlist cimport deliver
from uringloop.sync.acquirable cimport Acquirable


cdef class Lock(Acquirable):
    """asyncio.Lock for tasks of any loop, and with `with lock:` for plain threads as well."""

    cdef bint take(self) noexcept:
        if self.held:
            return False
        self.held = True
        return True

    cdef int give_back(self) except -1:
        cdef PyObject *next
        while True:
            ur_guard_lock(&self.guard)
            if self.owed:
                self.owed -= 1
                ur_guard_unlock(&self.guard)
                return 0
            if not self.held:
                ur_guard_unlock(&self.guard)
                raise RuntimeError("Lock is not acquired.")
            next = self.pop()
            if next is NULL:
                self.held = False
            ur_guard_unlock(&self.guard)
            if next is NULL or deliver(next):
                return 0

    cdef str called(self):
        return "Lock.acquire"

    def owe(self):
        """One who does not hold it is about to release it, and can not be kept from that: one release does nothing. Whose
        does not matter, for there will be one for each who holds it, and one more."""
        ur_guard_lock(&self.guard)
        self.owed += 1
        ur_guard_unlock(&self.guard)

    def locked(self):
        return self.held

    def statistics(self):
        """{locked, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return {"locked": self.held, **self.counts()}

    def __repr__(self):
        return f"<{type(self).__name__} {'locked' if self.held else 'unlocked'} waiting={self.waiting}>"
