# Semaphore and BoundedSemaphore: a number of permits. They own how many are free; strictly first come, first
# served, and a permit that is released while somebody waits is never free.
import math

from uringloop.sync.acquirable cimport Acquirable

from uringloop.errors import NotInitialised

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

# What inf is counted as: it neither ends nor overflows before the program does.
cdef Py_ssize_t NO_LIMIT = PY_SSIZE_T_MAX // 2


cdef Py_ssize_t _permits(object value) except -1:
    """A number that may be a float, as asyncio takes it, if it is whole or inf."""
    if value < 0:
        raise ValueError("Semaphore initial value must be >= 0")
    if value >= NO_LIMIT:
        return NO_LIMIT
    if value != int(value):
        raise ValueError(f"Semaphore initial value must be a whole number, not {value!r}")
    return int(value)


cdef class Semaphore(Acquirable):
    """asyncio.Semaphore for tasks of any loop, and with `with semaphore:` for plain threads as well."""

    def __cinit__(self, *args, **options):
        self.refusal = NotInitialised

    def __init__(self, value=1):
        self.value = _permits(value)
        self.refusal = None
        self.bound = PY_SSIZE_T_MAX

    cdef bint try_acquire(self) noexcept:
        if self.value == 0:
            return False
        self.value -= 1
        return True

    cdef bint put_back(self) noexcept:
        if self.value >= self.bound and self.waiting == 0:  # a waiter takes it at once: not one too many
            return False
        self.value += 1
        return True

    cdef str wait_name(self):
        return "Semaphore.acquire"

    cdef int let_go(self) except -1:
        if not self.hand_on():
            raise ValueError(f"{type(self).__name__} released too many times")
        return 0

    @property
    def _value(self):
        return self.value if self.value < NO_LIMIT // 2 else math.inf  # programs look at asyncio's

    def locked(self):
        """Would acquire() wait?"""
        return self.value == 0

    def statistics(self):
        """{value, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return {"value": self._value, **self.counts()}

    def __repr__(self):
        return f"<{type(self).__name__} value={self._value} waiting={self.waiting}>"


cdef class BoundedSemaphore(Semaphore):
    """A Semaphore whose release() raises ValueError if there would be more permits than at first."""

    def __init__(self, value=1):
        Semaphore.__init__(self, value)
        self.bound = self.value
