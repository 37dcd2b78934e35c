/* Bare C echo server on io_uring: the physical limit next to which the loops are measured. No library, raw calls.
 * usage: uring_server FAMILY WHERE CORE WORK_NS [BUFFER_SIZE [BUSY_NS]]      FAMILY is tcp or unix; prints its port
 *
 * Multishot accept, multishot receive into one ring of provided buffers, answers sent straight from these buffers.
 * All answers of one walk over the completions leave in the same io_uring_enter that waits for the next ones.
 * They are sent with MSG_DONTWAIT, so they are finished when that call returns, and with CQE_SKIP_SUCCESS, so only
 * a send that failed or was short has a completion; its rest is sent again by an operation that may wait.
 */
#include "common.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef IOSQE_CQE_SKIP_SUCCESS
#define IOSQE_CQE_SKIP_SUCCESS (1U << 6)
#endif

enum { ENTRIES = 1024, JOINED = 16, GROUP = 1, POOL_BYTES = 2 << 20 };
enum { ACCEPT = 1, RECV, SEND_NOW, SEND_WAIT };
enum { IDLE, SENDING, WAITING };

struct connection {
    int head, tail;      /* queue of received buffers, -1 when empty */
    size_t head_sent;    /* bytes of the head buffer that are sent */
    size_t submitted;    /* bytes of the send in the kernel */
    int state, ended, dirty;
    struct msghdr message;
    struct iovec parts[JOINED];
};

static int ring_fd;
static unsigned *sq_tail, *sq_head, *sq_flags, *cq_head, *cq_tail, sq_mask, cq_mask, sq_local, to_submit;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;

static struct io_uring_buf_ring *pool;
static char *pool_bytes;
static size_t buffer_size;
static unsigned buffer_count;
static uint16_t pool_tail;
static int *buffer_next;
static size_t *buffer_length;

static struct connection **connections;
static int connection_count;
static int *dirty, *sent, *starved, dirty_count, sent_count, starved_count;
static uint64_t work, busy;

static int enter(unsigned submit, unsigned wait)
{
    int n = (int)syscall(__NR_io_uring_enter, ring_fd, submit, wait, IORING_ENTER_GETEVENTS, NULL, 0);
    if (n < 0 && errno != EINTR && errno != EBUSY && errno != EAGAIN) die("io_uring_enter");
    return n;
}

static void submit(unsigned wait)
{
    __atomic_store_n(sq_tail, sq_local, __ATOMIC_RELEASE);
    int n = enter(to_submit, wait);
    if (n > 0) to_submit -= (unsigned)n;
}

static struct io_uring_sqe *entry(uint8_t opcode, int fd, uint64_t kind)
{
    while (sq_local - __atomic_load_n(sq_head, __ATOMIC_ACQUIRE) >= ENTRIES) submit(0);
    struct io_uring_sqe *sqe = &sqes[sq_local & sq_mask];
    sq_local++;
    to_submit++;
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = opcode;
    sqe->fd = fd;
    sqe->user_data = kind << 32 | (uint32_t)fd;
    return sqe;
}

static void set_up_ring(void)
{
    struct io_uring_params p = {.cq_entries = 16 * ENTRIES};
    p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    p.flags |= IORING_SETUP_TASKRUN_FLAG;
    ring_fd = (int)syscall(__NR_io_uring_setup, ENTRIES, &p);
    if (ring_fd < 0) die("io_uring_setup");
    size_t sq_bytes = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    size_t cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *base = mmap(NULL, bytes, protection, flags, ring_fd, IORING_OFF_SQ_RING);
    sqes = mmap(NULL, p.sq_entries * sizeof *sqes, protection, flags, ring_fd, IORING_OFF_SQES);
    if (base == MAP_FAILED || (void *)sqes == MAP_FAILED) die("mmap");
    sq_head = (unsigned *)(base + p.sq_off.head);
    sq_tail = (unsigned *)(base + p.sq_off.tail);
    sq_flags = (unsigned *)(base + p.sq_off.flags);
    sq_mask = *(unsigned *)(base + p.sq_off.ring_mask);
    cq_head = (unsigned *)(base + p.cq_off.head);
    cq_tail = (unsigned *)(base + p.cq_off.tail);
    cq_mask = *(unsigned *)(base + p.cq_off.ring_mask);
    cqes = (struct io_uring_cqe *)(base + p.cq_off.cqes);
    for (unsigned i = 0; i < p.sq_entries; i++) ((unsigned *)(base + p.sq_off.array))[i] = i;
}

/* Give a buffer back; the kernel sees it when publish_buffers stores the tail. */
static void give_back(int id)
{
    struct io_uring_buf *buffer = &pool->bufs[pool_tail & (buffer_count - 1)];
    buffer->addr = (uint64_t)(uintptr_t)(pool_bytes + (size_t)id * buffer_size);
    buffer->len = (uint32_t)buffer_size;
    buffer->bid = (uint16_t)id;
    pool_tail++;
}

static void publish_buffers(void) { __atomic_store_n(&pool->tail, pool_tail, __ATOMIC_RELEASE); }

/* Few buffers, because each comes back only after all others were used: a large pool is never in the caches. */
static void set_up_buffers(void)
{
    buffer_count = 32768;
    while (buffer_count > 64 && buffer_count * buffer_size > POOL_BYTES) buffer_count /= 2;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    pool = mmap(NULL, buffer_count * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE, flags, -1, 0);
    pool_bytes = mmap(NULL, buffer_count * buffer_size, PROT_READ | PROT_WRITE, flags, -1, 0);
    buffer_next = calloc(buffer_count, sizeof *buffer_next);
    buffer_length = calloc(buffer_count, sizeof *buffer_length);
    struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)pool, .ring_entries = buffer_count, .bgid = GROUP};
    if (syscall(__NR_io_uring_register, ring_fd, IORING_REGISTER_PBUF_RING, &reg, 1)) die("register buffers");
    for (unsigned i = 0; i < buffer_count; i++) give_back((int)i);
    publish_buffers();
}

static void arm_accept(int listener)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_ACCEPT, listener, ACCEPT);
    sqe->ioprio = IORING_ACCEPT_MULTISHOT;
    sqe->accept_flags = SOCK_CLOEXEC;
}

static void arm_recv(int fd)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_RECV, fd, RECV);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
}

static void accepted(int fd)
{
    int one = 1;
    if (fd >= connection_count) {
        int count = fd * 2 + 64;
        connections = realloc(connections, (size_t)count * sizeof *connections);
        memset(connections + connection_count, 0, (size_t)(count - connection_count) * sizeof *connections);
        dirty = realloc(dirty, (size_t)count * sizeof *dirty);
        sent = realloc(sent, (size_t)count * sizeof *sent);
        starved = realloc(starved, (size_t)count * sizeof *starved);
        connection_count = count;
    }
    if (!connections[fd]) connections[fd] = malloc(sizeof **connections);
    memset(connections[fd], 0, sizeof **connections);
    connections[fd]->head = connections[fd]->tail = -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    arm_recv(fd);
}

static void mark(int fd)
{
    if (connections[fd]->dirty) return;
    connections[fd]->dirty = 1;
    dirty[dirty_count++] = fd;
}

static void received(int fd, const struct io_uring_cqe *cqe)
{
    struct connection *c = connections[fd];
    if (cqe->res > 0) {
        int id = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
        work_for(work);
        buffer_next[id] = -1;
        buffer_length[id] = (size_t)cqe->res;
        if (c->tail >= 0) buffer_next[c->tail] = id;
        else c->head = id;
        c->tail = id;
    }
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        if (cqe->res == -ENOBUFS) starved[starved_count++] = fd;
        else if (cqe->res > 0) arm_recv(fd);
        else c->ended = 1;
    }
    mark(fd);
}

/* Take `count` sent bytes from the head of the queue and give finished buffers back. */
static void consume(struct connection *c, size_t count)
{
    while (count) {
        int id = c->head;
        size_t left = buffer_length[id] - c->head_sent;
        if (count < left) { c->head_sent += count; return; }
        count -= left;
        c->head_sent = 0;
        c->head = buffer_next[id];
        if (c->head < 0) c->tail = -1;
        give_back(id);
    }
}

/* One send of everything that is queued, up to JOINED buffers. */
static void send_queue(int fd, struct connection *c)
{
    int count = 0;
    size_t skip = c->head_sent;
    c->submitted = 0;
    for (int id = c->head; id >= 0 && count < JOINED; id = buffer_next[id], skip = 0, count++) {
        c->parts[count].iov_base = pool_bytes + (size_t)id * buffer_size + skip;
        c->parts[count].iov_len = buffer_length[id] - skip;
        c->submitted += c->parts[count].iov_len;
    }
    struct io_uring_sqe *sqe = entry(count > 1 ? IORING_OP_SENDMSG : IORING_OP_SEND, fd, SEND_NOW);
    c->message = (struct msghdr){.msg_iov = c->parts, .msg_iovlen = (size_t)count};
    sqe->addr = count > 1 ? (uint64_t)(uintptr_t)&c->message : (uint64_t)(uintptr_t)c->parts[0].iov_base;
    sqe->len = count > 1 ? 1 : (uint32_t)c->parts[0].iov_len;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL;
    sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
    c->state = SENDING;
    sent[sent_count++] = fd;
}

/* The head buffer by a send that may wait for room. */
static void send_waiting(int fd, struct connection *c)
{
    struct io_uring_sqe *sqe = entry(IORING_OP_SEND, fd, SEND_WAIT);
    sqe->addr = (uint64_t)(uintptr_t)(pool_bytes + (size_t)c->head * buffer_size + c->head_sent);
    sqe->len = (uint32_t)(buffer_length[c->head] - c->head_sent);
    sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
    c->state = WAITING;
}

static void send_ended(int fd, int result, int may_retry)
{
    struct connection *c = connections[fd];
    c->state = IDLE;
    if (result > 0) consume(c, (size_t)result);
    else if (!(may_retry && result == -EAGAIN)) {
        while (c->head >= 0) consume(c, buffer_length[c->head] - c->head_sent);
        shutdown(fd, SHUT_RDWR);
    }
    if (may_retry && c->head >= 0) send_waiting(fd, c);
    mark(fd);
}

static void walk(int listener)
{
    unsigned head = *cq_head, tail = __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++) {
        const struct io_uring_cqe *cqe = &cqes[head & cq_mask];
        int fd = (int)(uint32_t)cqe->user_data;
        switch (cqe->user_data >> 32) {
        case ACCEPT:
            if (cqe->res >= 0) accepted(cqe->res);
            if (!(cqe->flags & IORING_CQE_F_MORE)) arm_accept(listener);
            break;
        case RECV: received(fd, cqe); break;
        case SEND_NOW: send_ended(fd, cqe->res, 1); break;
        case SEND_WAIT: send_ended(fd, cqe->res, 0); break;
        }
    }
    __atomic_store_n(cq_head, head, __ATOMIC_RELEASE);
}

/* Sends without a completion by now have succeeded: only failures and short sends post one. */
static void finish_sends(const int *list, int count)
{
    for (int i = 0; i < count; i++) {
        struct connection *c = connections[list[i]];
        if (c->state != SENDING) continue;
        c->state = IDLE;
        consume(c, c->submitted);
        if (c->head >= 0 || c->ended) mark(list[i]);
    }
}

static void answer(void)
{
    for (int i = 0; i < dirty_count; i++) {
        struct connection *c = connections[dirty[i]];
        c->dirty = 0;
        if (c->state == IDLE && c->head >= 0) send_queue(dirty[i], c);
        else if (c->state == IDLE && c->ended) { c->ended = 0; close(dirty[i]); }
    }
    dirty_count = 0;
}

static int something_to_see(void)
{
    if (__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) != *cq_head) return 1;
    return (__atomic_load_n(sq_flags, __ATOMIC_ACQUIRE) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* With `busy`, look at the shared memory for a while before sleeping in the kernel. */
static void submit_and_wait(void)
{
    do submit(busy == 0);
    while (to_submit);
    if (!busy) return;
    uint64_t until = now_ns() + busy;
    while (!something_to_see() && now_ns() < until) continue;
    enter(0, something_to_see() ? 0 : 1);
}

int main(int argc, char **argv)
{
    if (argc < 5) { fprintf(stderr, "usage: uring_server FAMILY WHERE CORE WORK_NS [BUFFER_SIZE [BUSY_NS]]\n"); return 2; }
    pin(atoi(argv[3]));
    raise_file_limit();
    signal(SIGPIPE, SIG_IGN);
    work = strtoull(argv[4], NULL, 10);
    buffer_size = argc > 5 ? strtoul(argv[5], NULL, 10) : 4096;
    busy = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
    set_up_ring();
    set_up_buffers();
    int listener = listen_and_tell(argv[1], argv[2]);
    arm_accept(listener);
    for (;;) {
        sent_count = 0;
        answer();
        int count = sent_count;
        submit_and_wait();
        walk(listener);
        finish_sends(sent, count);
        publish_buffers();
        for (int i = 0; i < starved_count; i++) arm_recv(starved[i]);
        starved_count = 0;
    }
}
