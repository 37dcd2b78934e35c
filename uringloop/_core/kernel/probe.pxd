from libc.stdint cimport uint32_t


cdef struct KernelFeatures:
    # What this kernel offers and no switch turned off; filled once a process.
    int refused            # 0, or the errno io_uring_setup answered
    uint32_t setup_flags   # the best set of ring flags it accepts
    uint32_t features
    bint registered_ring
    bint abs_timer
    bint no_iowait
    bint quiet_send        # CQE_SKIP
    bint buffer_ring
    bint multishot_recv
    bint multishot_accept
    bint waitid
    bint epoll_wait
    bint ftruncate
    bint fixed_buffers


cdef struct Sizes:
    # How large things are made; tiny with URINGLOOP_TINY, and in a debug build without URINGLOOP_TINY=0.
    unsigned entries
    unsigned completions
    unsigned buffers
    unsigned buffer_size
    unsigned send            # bytes handed to the kernel at once: an entry's length has 32 bits, its result 31


cdef KernelFeatures *kernel_features() except NULL
cdef Sizes *sizes() except NULL
cdef bint cuts_datagrams()
cpdef locked_memory(error)
