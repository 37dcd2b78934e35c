# TransportTable: the transports of one loop, by descriptor. Keeps no transport alive: a transport leaves the table when it
# closes its descriptor, at the latest at the start of its destructor. It takes eight bytes per descriptor, a dictionary of
# weak references 180. Only the loop's thread uses it.
#
# Without the GIL, another thread may drop the last reference while this one reads: there, it uses such a dictionary.
from weakref import WeakValueDictionary

from cpython.object cimport PyObject
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from uringloop._core.lifetime.guard cimport UR_FREE_THREADED

cdef enum:
    LEAST = 64


cdef class TransportTable:
    def __cinit__(self):
        if UR_FREE_THREADED:
            self.weak = WeakValueDictionary()

    def __dealloc__(self):
        free(self.transports)

    def __len__(self):
        return len(self.weak) if UR_FREE_THREADED else self.count

    def __repr__(self):
        return f"<TransportTable of {len(self)}>"

    def get(self, fd):
        """The transport of the descriptor, or None."""
        try:
            return self.find(fd)
        except OverflowError:  # not a possible descriptor
            return None

    cdef int put(self, int fd, object transport) except -1:
        """Enter the transport, in place of an earlier one with this descriptor. It must call `drop` before it is freed."""
        if UR_FREE_THREADED:
            self.weak[fd] = transport
            return 0
        if fd >= self.size:
            self._grow(fd)
        self.count += self.transports[fd] is NULL
        self.transports[fd] = <PyObject *> transport
        return 0

    cdef int _grow(self, int fd) except -1:
        cdef Py_ssize_t size = max(LEAST, <Py_ssize_t> fd + 1 + (fd >> 2))
        cdef PyObject **larger = <PyObject **> realloc(self.transports, size * sizeof(PyObject *))
        if larger is NULL:
            raise MemoryError
        memset(larger + self.size, 0, (size - self.size) * sizeof(PyObject *))
        self.transports = larger
        self.size = size
        return 0

    cdef object find(self, int fd):
        if UR_FREE_THREADED:
            return self.weak.get(fd)
        return <object> self.transports[fd] if self.has(fd) else None

    cdef bint has(self, int fd) noexcept:
        """Whether a transport has the descriptor; without the GIL, whether one may have it."""
        return UR_FREE_THREADED or 0 <= fd < self.size and self.transports[fd] is not NULL

    cdef int drop(self, int fd, object transport) except -1:
        """Remove the transport, unless the descriptor belongs to another one by now."""
        if UR_FREE_THREADED:
            if self.weak.get(fd) is transport:
                del self.weak[fd]
        elif self.has(fd) and self.transports[fd] is <PyObject *> transport:
            self.transports[fd] = NULL
            self.count -= 1
        return 0
