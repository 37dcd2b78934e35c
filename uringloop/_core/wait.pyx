# Entry and Wait: what the primitives' methods return to be awaited. They take nothing before they are
# awaited, and own nothing but the iterator that `start` of the line gave them.
from uringloop._core.finished cimport FINISHED
from uringloop._core.waitlist cimport Waitlist


cdef class Entry:
    """What `async with` awaits: one for all who enter, for it has no state."""

    def __await__(self):
        return self.line.start(self.value)


cdef class Wait(Entry):
    """What `acquire()` and its like return: awaited once, or made a task like a coroutine."""

    def __await__(self):
        self.begin()
        return self.iterator

    cdef int begin(self) except -1:
        if self.iterator is not None:
            raise RuntimeError("cannot reuse an already awaited wait")
        self.iterator = self.line.start(self.value)
        return 0

    def send(self, value):
        if self.iterator is None:
            self.begin()
        return self.iterator.send(value)

    def throw(self, kind, value=None, traceback=None):
        if self.iterator is None:
            self.iterator = FINISHED  # never begun, and never will be
        return self.iterator.throw(kind, value, traceback)

    def close(self):
        if self.iterator is None:
            self.iterator = FINISHED
        self.iterator.close()

    def __repr__(self):
        return f"<Wait for {self.line!r}>"


cdef Entry make_entry(Waitlist line, object value):
    cdef Entry entry = Entry.__new__(Entry)
    entry.line = line
    entry.value = value
    return entry


cdef Wait make_wait(Waitlist line, object value):
    cdef Wait wait = Wait.__new__(Wait)
    wait.line = line
    wait.value = value
    return wait
