/* epoll_wait as an operation of a ring (IORING_OP_EPOLL_WAIT, Linux 6.15): one io_uring_enter submits it and sleeps. */
#ifndef BENCHMARK_EPOLL_IN_RING_H
#define BENCHMARK_EPOLL_IN_RING_H
#include "common.h"
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { EPOLL_WAIT_OPCODE = 59, REGISTER_RING = 20, ENTER_REGISTERED = 1 << 4, RING_ENTRIES = 8 };

static int wait_ring;
static unsigned *wait_sq_tail, *wait_cq_head, *wait_cq_tail, wait_sq_mask, wait_cq_mask;
static struct io_uring_sqe *wait_sqes;
static struct io_uring_cqe *wait_cqes;

static inline void set_up_ring(void)
{
    struct io_uring_params p = {.flags = 1 << 12 | 1 << 13}; /* SINGLE_ISSUER, DEFER_TASKRUN */
    int fd = (int)syscall(__NR_io_uring_setup, RING_ENTRIES, &p);
    if (fd < 0) die("io_uring_setup");
    size_t bytes = p.cq_off.cqes + p.cq_entries * sizeof *wait_cqes;
    if (bytes < p.sq_off.array + p.sq_entries * sizeof(unsigned)) bytes = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *base = mmap(NULL, bytes, protection, flags, fd, IORING_OFF_SQ_RING);
    wait_sqes = mmap(NULL, p.sq_entries * sizeof *wait_sqes, protection, flags, fd, IORING_OFF_SQES);
    if (base == MAP_FAILED || (void *)wait_sqes == MAP_FAILED) die("mmap");
    wait_sq_tail = (unsigned *)(base + p.sq_off.tail);
    wait_cq_head = (unsigned *)(base + p.cq_off.head);
    wait_cq_tail = (unsigned *)(base + p.cq_off.tail);
    wait_sq_mask = p.sq_entries - 1;
    wait_cq_mask = p.cq_entries - 1;
    wait_cqes = (struct io_uring_cqe *)(base + p.cq_off.cqes);
    for (unsigned i = 0; i < p.sq_entries; i++) ((unsigned *)(base + p.sq_off.array))[i] = i;
    struct io_uring_files_update own = {.offset = (unsigned)-1, .fds = (unsigned)fd}; /* io_uring_rsrc_update's layout */
    if (syscall(__NR_io_uring_register, fd, REGISTER_RING, &own, 1) != 1) die("register the ring");
    wait_ring = (int)own.offset;
}

static inline int epoll_wait_in_ring(int poller, struct epoll_event *events, int room)
{
    struct io_uring_sqe *sqe = &wait_sqes[*wait_sq_tail & wait_sq_mask];
    *sqe = (struct io_uring_sqe){.opcode = EPOLL_WAIT_OPCODE, .fd = poller, .len = (unsigned)room};
    sqe->addr = (uint64_t)(uintptr_t)events;
    __atomic_store_n(wait_sq_tail, *wait_sq_tail + 1, __ATOMIC_RELEASE);
    unsigned submit = 1;
    do {
        long n = syscall(__NR_io_uring_enter, wait_ring, submit, 1, IORING_ENTER_GETEVENTS | ENTER_REGISTERED, NULL, 0);
        if (n < 0 && errno != EINTR) die("io_uring_enter");
        if (n > 0) submit = 0;
    } while (__atomic_load_n(wait_cq_tail, __ATOMIC_ACQUIRE) == *wait_cq_head);
    int found = wait_cqes[*wait_cq_head & wait_cq_mask].res;
    __atomic_store_n(wait_cq_head, *wait_cq_head + 1, __ATOMIC_RELEASE);
    if (found < 0) { errno = -found; die("epoll_wait in the ring"); }
    return found;
}

#endif
