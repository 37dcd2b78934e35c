# When a waiter began to wait, for reports.
from libc.stdint cimport int64_t

cdef int64_t now_if_recorded() noexcept
