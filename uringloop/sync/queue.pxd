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
    cdef object order          # an RLock: comparing items runs their code, meanwhile other threads may use the queue
    cdef bint comparing        # under `order`

    cdef int begin(self) except -1


cdef class Permits(Waitlist):
    cdef Store store           # never changes
    cdef Py_ssize_t free       # under the guard: 0 while a waiter is in line


cdef class Items(Permits):
    cdef Room room             # never changes; None: the queue has no limit
    cdef WaitGroup unfinished
    cdef int discarding        # shutdown(immediate=True) was called: set once, read by any thread

    cdef int discard(self) except -1


cdef class Room(Permits):
    cdef Items items           # never changes
    cdef bint unlimited        # never changes


cdef class Queue:
    # None of these ever changes.
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
