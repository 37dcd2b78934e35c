/* Bare C echo server on epoll: what the kernel's readiness interface costs without any event loop above it.
 * usage: epoll_server FAMILY WHERE CORE WORK_NS [sink | ring]      FAMILY is tcp, unix or udp; prints its port
 * ring: waits for the epoll set in a ring, as uringloop does for add_reader (needs Linux 6.15) */
#include "common.h"
#include "epoll_in_ring.h"
#include <sys/epoll.h>

enum { EVENTS = 512, CHUNK = 256 * 1024 };

/* What could not be sent yet, per connection, found by file descriptor. */
struct rest {
    char *data;
    size_t length, sent;
};
static struct rest *rests;
static size_t rest_count;
static int poller;
static uint64_t work;
static int sink;
static char chunk[CHUNK];

static struct rest *rest_of(int fd)
{
    if ((size_t)fd >= rest_count) {
        size_t count = (size_t)fd * 2 + 64;
        rests = realloc(rests, count * sizeof *rests);
        memset(rests + rest_count, 0, (count - rest_count) * sizeof *rests);
        rest_count = count;
    }
    return &rests[fd];
}

static void watch(int fd, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(poller, operation, fd, &event)) die("epoll_ctl");
}

static void drop(int fd)
{
    struct rest *rest = rest_of(fd);
    free(rest->data);
    memset(rest, 0, sizeof *rest);
    close(fd);
}

static void accept_all(int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

/* Send the rest; while there is one, the connection is not read: that is its flow control. */
static void flush(int fd)
{
    struct rest *rest = rest_of(fd);
    ssize_t n = send(fd, rest->data + rest->sent, rest->length - rest->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) { drop(fd); return; }
    if (n > 0) rest->sent += (size_t)n;
    if (rest->sent < rest->length) return;
    free(rest->data);
    memset(rest, 0, sizeof *rest);
    watch(fd, EPOLLIN, EPOLL_CTL_MOD);
}

static void echo(int fd)
{
    ssize_t got = recv(fd, chunk, CHUNK, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) { drop(fd); return; }
    work_for(work);
    if (sink) return;
    ssize_t n = send(fd, chunk, (size_t)got, MSG_NOSIGNAL);
    if (n == got) return;
    if (n < 0 && errno != EAGAIN) { drop(fd); return; }
    if (n < 0) n = 0;
    struct rest *rest = rest_of(fd);
    rest->length = (size_t)(got - n);
    rest->data = malloc(rest->length);
    memcpy(rest->data, chunk + n, rest->length);
    watch(fd, EPOLLOUT, EPOLL_CTL_MOD);
}

static void serve_datagrams(int fd)
{
    struct sockaddr_storage peer;
    for (;;) {
        socklen_t length = sizeof peer;
        ssize_t got = recvfrom(fd, chunk, CHUNK, 0, (struct sockaddr *)&peer, &length);
        if (got < 0) return;
        work_for(work);
        sendto(fd, chunk, (size_t)got, 0, (struct sockaddr *)&peer, length);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) { fprintf(stderr, "usage: epoll_server FAMILY WHERE CORE WORK_NS [sink | ring]\n"); return 2; }
    int udp = strcmp(argv[1], "udp") == 0;
    pin(atoi(argv[3]));
    raise_file_limit();
    signal(SIGPIPE, SIG_IGN);
    work = strtoull(argv[4], NULL, 10);
    sink = argc > 5 && strcmp(argv[5], "sink") == 0;
    int in_ring = argc > 5 && strcmp(argv[5], "ring") == 0;
    if (in_ring) set_up_ring();
    int listener = listen_and_tell(argv[1], argv[2]);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    poller = epoll_create1(EPOLL_CLOEXEC);
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = in_ring ? epoll_wait_in_ring(poller, events, EVENTS) : epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) udp ? serve_datagrams(fd) : accept_all(fd);
            else if (rest_of(fd)->data) flush(fd);
            else echo(fd);
        }
    }
}
