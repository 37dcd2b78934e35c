from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF


cdef class Runnable:
    # Both fields belong to the queue that holds the object, and so to that queue's thread or guard.
    cdef PyObject *next
    cdef bint queued

    cdef int run(self, object loop) except -1
    cdef object culprit(self)
    cdef void dropped(self) noexcept
    cdef void run_ended(self) noexcept
    cdef bint forking(self) noexcept


cdef class ReadyQueue:
    cdef PyObject *head   # each link owns one reference; invisible to Cython, shown to the collector by ready_queue.pyx
    cdef PyObject *tail
    cdef Py_ssize_t count
    cdef object _gc       # an object field makes Cython give the type garbage collection

    cdef void append(self, ReadyQueue other) noexcept
    cdef void clear(self) noexcept


cdef inline void ready_push_owned(ReadyQueue queue, PyObject *node) noexcept:
    """Append a node, and take over the caller's reference."""
    (<Runnable> node).next = NULL
    (<Runnable> node).queued = True
    if queue.tail is NULL:
        queue.head = node
    else:
        (<Runnable> queue.tail).next = node
    queue.tail = node
    queue.count += 1


cdef inline void ready_push(ReadyQueue queue, Runnable node) noexcept:
    """Append a node; the queue takes its own reference."""
    Py_INCREF(node)
    ready_push_owned(queue, <PyObject *> node)


cdef inline PyObject *ready_pop(ReadyQueue queue) noexcept:
    """Remove and return the head, whose reference the caller then owns. Never called on an empty queue."""
    cdef PyObject *node = queue.head
    queue.head = (<Runnable> node).next
    if queue.head is NULL:
        queue.tail = NULL
    (<Runnable> node).queued = False
    queue.count -= 1
    return node
