from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.fixed_table cimport FixedTable
from uringloop._core.kernel.ring cimport Ring


cdef class UringEngine(Engine):
    # The loop's thread only, all of it.
    cdef Ring ring
    cdef long submitter             # the thread the ring is bound to; 0 while it is still disabled
    cdef long register_at           # the count of enters from which on this run's thread names the ring by a slot of its own
    cdef bint had_submitters        # threads before this one submitted to it
    cdef bint taskrun_visible       # pending kernel work shows in the ring's flags
    cdef unsigned blind_turns       # turns since the last enter, where it does not show
    cdef uintptr_t *backlog         # Op pointers, or pointer | 1: cancel that one
    cdef Py_ssize_t backlog_count
    cdef Py_ssize_t backlog_size
    cdef PyObject **quiet           # operations of the entries published last that end without a completion
    cdef unsigned *quiet_at         # ... and the position of each in the submission queue
    cdef Py_ssize_t quiet_count
    cdef FixedTable fixed           # memory the ring has pinned; None: nobody asked
    cdef readonly long overflows    # times completions had to be fetched from where the kernel parked them

    cdef int _open(self) except -1
    cdef _ring_error(self, int err)
    cdef int _move(self) except -1
    cdef void _change_submitter(self, long thread) noexcept
    cdef bint _resubmit(self, Op op) noexcept
    cdef void _close_ring(self) noexcept
    cdef int _push_backlog(self, uintptr_t entry) except -1
    cdef bint _fill(self) except -1
    cdef int _enter(self, bint wait, int64_t deadline_ns) except -1
    cdef void _walk(self) noexcept
    cdef void _settle_quiet(self) noexcept
    cdef void _wait_for_workers(self) noexcept
    cdef bint _has_other_submitter(self, long thread) noexcept
    cdef int _leave_ring(self) except -1
    cdef int _requeue_unsubmitted(self) except -1
    cdef int _resubmit_all(self, bint none) except -1
