cimport cython

from uringloop._core.loop.loop cimport Loop


@cython.final
cdef class TurnShare:
    # Only the thread of `loop` uses these fields.
    cdef Loop loop            # the one that the file was last used on; None before that
    cdef long turn            # the turn of that loop that `left` belongs to
    cdef int left             # how many steps the file may still do in it

    cdef bint spent(self) noexcept
    cdef void spend(self, Py_ssize_t size) noexcept


cdef TurnShare make_turn_share()
