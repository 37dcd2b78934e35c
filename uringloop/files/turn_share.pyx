# TurnShare: the share of a loop's turn that one file may use before other tasks run. A call that finishes at once does
# not suspend its task: without a limit, a task that reads a cached file would keep the loop to itself. Owns that count,
# and names the loop that the file is used on. Does no work of the file's.
cimport cython

from uringloop._core.lifetime.guard cimport ur_only_core_makes
from uringloop._core.loop.loop cimport Loop

# How much finishes at once before others run, in steps of at most 16 KiB: by one file, and by all of a loop.
cdef enum:
    SHARE = 64
    LOOP_SHARE = 512
    STEP = 16384


@cython.final
@cython.no_gc_clear  # the destructor of an object in the same cycle may still use the file
cdef class TurnShare:
    cdef bint spent(self) noexcept:
        """Whether other tasks are to run first. A new turn brings a new share."""
        cdef Loop loop = self.loop
        if loop.file_turn != loop.turns:
            loop.file_turn = loop.turns
            loop.file_share = LOOP_SHARE
        if self.turn != loop.turns:
            self.turn = loop.turns
            self.left = SHARE
            return False
        return self.left <= 0 or loop.file_share <= 0

    cdef void spend(self, Py_ssize_t size) noexcept:
        cdef int steps = 1 + <int> (size // STEP)
        self.left -= steps
        self.loop.file_share -= steps


cdef TurnShare make_turn_share():
    return TurnShare.__new__(TurnShare)


ur_only_core_makes(TurnShare)
