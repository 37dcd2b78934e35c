# Entry and Wait: the awaitables that the primitives' methods return. They take nothing before they are
# awaited, and own nothing but the iterator that the line's `start` returned.
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from cython cimport no_gc_clear

from uringloop._core.awaitables.coroutine cimport as_exception, never_awaited
from uringloop._core.lifetime.guard cimport ur_only_core_makes, ur_set_dealloc
from uringloop._core.handoff.ready_awaitable cimport ReadyAwaitable
from uringloop._core.handoff.waitlist cimport Waitlist

ctypedef void (*destructor)(PyObject *) noexcept

cdef extern from *:
    """
    static inline destructor ur_tp_dealloc(PyObject *type) { return ((PyTypeObject *)type)->tp_dealloc; }
    """
    destructor ur_tp_dealloc(object type)
    void PyObject_GC_UnTrack(void *) noexcept


cdef class Entry:
    """The awaitable that `async with` awaits. It has no state, so all tasks that enter share one."""

    def __await__(self):
        return self.line.start(self.value)


@no_gc_clear  # its warning names the line. The collector breaks a cycle at another object in it
cdef class Wait(Entry):
    """The awaitable that `acquire()` and similar methods return. It is awaited once, or made a task like a coroutine."""

    def __await__(self):
        self.begin()
        return self.iterator

    cdef int begin(self) except -1:
        if self.begun:
            raise RuntimeError("cannot reuse an already awaited wait")
        self.begun = True
        self.iterator = self.line.start(self.value)
        return 0

    def send(self, value):
        if self.iterator is None:
            self.begin()
            if type(self.iterator) is ReadyAwaitable:
                self.line.held_by_a_task()
        return self.iterator.send(value)

    def throw(self, kind, value=None, traceback=None):
        self.begun = True
        if self.iterator is None:
            raise as_exception(kind, value, traceback)
        return self.iterator.throw(kind, value, traceback)

    def close(self):
        self.begun = True
        if self.iterator is not None:
            self.iterator.close()

    @property
    def __name__(self):
        return self.__qualname__.rpartition(".")[2]

    @property
    def __qualname__(self):
        return self.line.wait_name()

    def __repr__(self):
        return f"<Wait for {self.line!r}>"


cdef destructor _free = ur_tp_dealloc(Wait)


cdef void _dealloc(PyObject *self) noexcept:
    # Not __dealloc__: that would cost every Wait what only those need that were never awaited.
    if not (<Wait> self).begun:
        PyObject_GC_UnTrack(<void *> self)  # a collection may start below, and must not visit a dying object
        _warn((<Wait> self).line)
    _free(self)


cdef void _warn(Waitlist line) noexcept:
    cdef PyObject *kind
    cdef PyObject *error
    cdef PyObject *traceback
    PyErr_Fetch(&kind, &error, &traceback)
    if line is not None:
        never_awaited(line.wait_name())
    PyErr_Restore(kind, error, traceback)


ur_set_dealloc(Wait, _dealloc)


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


ur_only_core_makes(Entry)
ur_only_core_makes(Wait)
