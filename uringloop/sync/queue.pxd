from uringloop._core.handoff.waitlist cimport Waitlist
from uringloop.sync.wait_group cimport WaitGroup


cdef class Store:
    cdef object put_item       # methods of the container: any thread
    cdef object get_item

    cdef object get(self)
    cdef int put(self, object item) except -1
    cdef int clear(self) except -1


cdef class Stack(Store):
    pass


cdef class Heap(Store):
    cdef list items            # under `order`
    cdef object order          # a lock: comparing items runs their code, in which other threads may come
    cdef bint comparing        # the same

    cdef int begin(self) except -1


cdef class Permits(Waitlist):
    cdef Store store           # never changes
    cdef Py_ssize_t free       # under the guard: 0 while somebody waits


cdef class Items(Permits):
    cdef Room room             # never changes; None: there is no limit
    cdef WaitGroup unfinished
    cdef int discarding        # shutdown(immediate=True) was called: set once, read by any thread

    cdef int discard(self) except -1


cdef class Room(Permits):
    cdef Items items           # never changes
    cdef bint unlimited        # never changes


cdef class Queue:
    # Nothing of it ever changes.
    cdef readonly object maxsize
    cdef Items items
    cdef Room room
    cdef WaitGroup unfinished
    cdef object __weakref__

    cdef Store new_store(self)
    cdef object nowait(self, Permits line, object value, object error)


cdef class LifoQueue(Queue):
    pass


cdef class PriorityQueue(Queue):
    pass
