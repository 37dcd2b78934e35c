# Runnable and ReadyQueue: the queue of everything that a turn runs. Handles, due timers and completed operations are all
# Runnables and share one FIFO, in the order in which they became ready, so that their order is asyncio's. It is an
# intrusive list: a push allocates nothing, and moving a whole list takes three stores. The queue owns one reference to
# each node, and never runs anything.
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from uringloop._core.lifetime.links cimport show_links


cdef class Runnable:
    cdef int run(self, object loop) except -1:
        """Do the work. Raises only exceptions that must leave run_forever (SystemExit, KeyboardInterrupt)."""
        raise NotImplementedError

    cdef object culprit(self):
        """In debug mode: the user's function that `run` is about to call, or None."""
        return None

    cdef void dropped(self) noexcept:
        """Its queue was cleared because the loop closes: it will not run."""

    cdef void run_ended(self) noexcept:
        """The loop stops running while this is still queued: do what must not wait until the loop runs again."""

    cdef bint forking(self) noexcept:
        """The loop's thread forks in a turn at whose end this would run: do now what only one process may do, and return
        whether there was anything to do."""
        return False


cdef class ReadyQueue:
    def __len__(self):
        return self.count

    cdef void append(self, ReadyQueue other) noexcept:
        """Move all nodes of `other` to the end of this queue."""
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
        # One at a time: freeing a node may run Python code, which may push nodes.
        cdef PyObject *node
        while self.head is not NULL:
            node = ready_pop(self)
            (<Runnable> node).dropped()
            Py_DECREF(<object> node)

    def __dealloc__(self):
        self.clear()


# Without this, the collector could never free an unclosed loop that still has something in the queue.
show_links(ReadyQueue, &(<ReadyQueue> <PyObject *> ReadyQueue).head, &(<Runnable> <PyObject *> ReadyQueue).next)
