# Semaphore and BoundedSemaphore: a number of permits. They own the number of free ones. Strictly first come, first
# served: a permit that is released while a waiter is in line is never free.
import math

from uringloop.sync.acquirable cimport Acquirable
from uringloop.sync.described cimport named, queued, title

from uringloop.errors import NotInitialised

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

# The value that stands for inf: no program lasts long enough to use it up or make it overflow.
cdef Py_ssize_t NO_LIMIT = PY_SSIZE_T_MAX // 2


cdef Py_ssize_t _permits(object value) except -1:
    """The number of permits as an int. asyncio accepts a float; this does if it is whole or inf."""
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

    def __init__(self, value=1, *, str name=None):
        self.value = _permits(value)
        self.name = name
        self.refusal = None
        self.bound = PY_SSIZE_T_MAX

    cdef bint try_acquire(self) noexcept:
        if self.value == 0:
            return False
        self.value -= 1
        return True

    cdef bint put_back(self) noexcept:
        if self.value >= self.bound and self.waiting == 0:  # with a waiter in line there is no surplus: it takes the permit
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
        return self.value if self.value < NO_LIMIT // 2 else math.inf  # programs read this private attribute of asyncio's

    def locked(self):
        """Whether acquire() would wait."""
        return self.value == 0

    def statistics(self):
        """{value, waiting: now; waits, grants, cancels, passes: since it was made}."""
        return named(self, {"value": self._value})

    def __repr__(self):
        return f"<{title(self, self.name)} value={self._value} {queued(self)}>"


cdef class BoundedSemaphore(Semaphore):
    """A Semaphore whose release() raises ValueError if it would make more permits than the initial value."""

    def __init__(self, value=1, *, str name=None):
        Semaphore.__init__(self, value, name=name)
        self.bound = self.value
