# io_uring and libc as the kernel has them: the ABI, one ring, its buffers and its pinned memory, addresses, and what this kernel offers.
