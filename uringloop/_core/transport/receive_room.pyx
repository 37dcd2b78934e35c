# ReceiveRoom: where datagrams arrive, as many as one system call brings. Owns the memory and its description for the
# kernel; receives nothing itself.
from uringloop._core.kernel.libc cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

cdef enum:
    LARGEST_UDP = 65536
    # Not a power of two, or the first bytes of all datagrams would compete for the same cache lines.
    STRIDE = 65536 + 1088


cdef class ReceiveRoom:
    def __cinit__(self):
        cdef int i
        self.area = <char *> mmap(NULL, BATCH * STRIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if <void *> self.area == MAP_FAILED:
            self.area = NULL
            raise MemoryError
        self.large = self.area  # a datagram alone may use several places
        for i in range(BATCH):
            self.batch.pieces[i].iov_base = self.area + i * STRIDE
            self.batch.pieces[i].iov_len = LARGEST_UDP
            self.batch.messages[i].msg_hdr.msg_iov = &self.batch.pieces[i]
            self.batch.messages[i].msg_hdr.msg_iovlen = 1
            self.batch.messages[i].msg_hdr.msg_name = self.batch.names[i]

    def __dealloc__(self):
        if self.area is not NULL:
            munmap(self.area, BATCH * STRIDE)
