from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uintptr_t

from uringloop._core.engine.engine cimport Engine
from uringloop._core.engine.op cimport Op
from uringloop._core.kernel.fixed_table cimport FixedTable
from uringloop._core.kernel.ring cimport Ring


cdef class UringEngine(Engine):
    # Only the loop's thread uses these fields.
    cdef Ring ring
    cdef long submitter             # the thread that the ring is bound to; 0 while the ring is still disabled
    cdef long register_at           # the number of enters after which the thread registers the ring's descriptor
    cdef bint had_submitters        # earlier threads have submitted to this ring
    cdef object restrict            # restricts a new ring to what uringloop uses; None: rings are not restricted
    cdef bint taskrun_visible       # pending kernel work shows in the ring's flags
    cdef unsigned blind_turns       # turns since the last enter, if pending work doesn't show
    cdef uintptr_t *backlog         # Op pointers to submit, or pointer | 1: cancel that operation
    cdef Py_ssize_t backlog_count
    cdef Py_ssize_t backlog_size
    cdef PyObject **quiet           # quiet operations among the entries published last
    cdef unsigned *quiet_at         # ... and the position of each in the submission queue
    cdef Py_ssize_t quiet_count
    cdef FixedTable fixed           # memory that the ring has pinned; None: none yet
    cdef readonly long overflows    # how often completions were fetched that the kernel had parked

    cdef int _open(self) except -1
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
