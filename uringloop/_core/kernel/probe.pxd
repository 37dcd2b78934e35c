from libc.stdint cimport uint32_t


cdef struct KernelFeatures:
    # The features that this kernel offers and no switch has turned off; filled once per process.
    int refused            # 0, or the errno of io_uring_setup
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
    bint restrictions


cdef struct Sizes:
    # The sizes of rings and buffers; tiny with URINGLOOP_TINY, and in debug builds unless URINGLOOP_TINY=0.
    unsigned entries
    unsigned completions
    unsigned buffers
    unsigned buffer_size
    unsigned send            # the most bytes of one send: an entry's length has 32 bits, but its result only 31


cdef KernelFeatures *kernel_features() except NULL
cdef Sizes *sizes() except NULL
cdef bint cuts_datagrams()
cdef restriction()
cdef ring_error(int err)
cpdef locked_memory(error)
