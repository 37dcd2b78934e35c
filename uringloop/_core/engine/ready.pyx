# Runnable and ReadyQueue: what a turn runs, in the order in which it became ready. Handles, due timers
# and completed operations are all Runnables and share one FIFO, so that their order is asyncio's.
# An intrusive list: pushing allocates nothing, and handing a whole list over is three stores.
# Owns one reference to each node. Never runs anything.
from cpython.object cimport PyObject, traverseproc, visitproc
from cpython.ref cimport Py_DECREF

from uringloop._core.objects.guard cimport ur_get_traverse, ur_set_traverse, ur_visit_owned


cdef class Runnable:
    cdef int run(self, object loop) except -1:
        """What becoming ready leads to. -1 only for what must leave run_forever (SystemExit, KeyboardInterrupt)."""
        raise NotImplementedError

    cdef object culprit(self):
        """Debug mode: what of the user's `run` is about to call, None for nothing."""
        return None

    cdef void dropped(self) noexcept:
        """Its queue was thrown away, for its loop is closing: it will not run."""

    cdef void run_ended(self) noexcept:
        """The loop stops running, and this is still ready: do what must not wait until the loop runs again."""

    cdef bint forking(self) noexcept:
        """The loop's thread forks in a turn at whose end this runs: do now what only one process may do, and say whether there
        was anything."""
        return False


cdef class ReadyQueue:
    def __len__(self):
        return self.count

    cdef void append(self, ReadyQueue other) noexcept:
        """Move all of `other` behind what is here."""
        if other.head is NULL:
            return
        if self.tail is NULL:
            self.head = other.head
        else:
            (<Runnable> self.tail).next = other.head
        self.tail = other.tail
        self.count += other.count
        other.head = other.tail = NULL
        other.count = 0

    cdef void clear(self) noexcept:
        # One at a time: a node's end may run Python code, which may push.
        cdef PyObject *node
        while self.head is not NULL:
            node = ready_pop(self)
            (<Runnable> node).dropped()
            Py_DECREF(<object> node)

    def __dealloc__(self):
        self.clear()


cdef traverseproc _traverse_fields = ur_get_traverse(ReadyQueue)


cdef int _traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    # Without this a loop dropped unclosed, with something still ready, could never be collected.
    cdef PyObject *node = (<ReadyQueue> self).head
    cdef int result
    while node is not NULL:
        result = ur_visit_owned(node, visit, arg)
        if result:
            return result
        node = (<Runnable> node).next
    return _traverse_fields(self, visit, arg)


ur_set_traverse(ReadyQueue, <traverseproc> _traverse)
