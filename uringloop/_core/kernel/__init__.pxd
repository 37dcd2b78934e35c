# The kernel's interfaces: io_uring's ABI, one ring, its buffers and pinned memory, socket addresses, and the probe of features.
