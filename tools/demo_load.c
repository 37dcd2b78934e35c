/* The load of demo.py: CONNECTIONS sockets to an echo server, one message of SIZE bytes under way on each, for SECONDS.
 *
 *     demo_load PORT CONNECTIONS SIZE SECONDS
 *
 * Prints one line: requests, seconds measured, and the median and 99th percentile of their latency in microseconds.
 * One thread, one epoll, no allocation while it runs: it should never be what is measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP_NS 200000000LL
#define SLOWEST_US 1000000

struct connection {
    int fd;
    int missing; /* bytes of the echo that have not come back yet */
    int64_t sent_at;
};

static uint32_t latencies[SLOWEST_US + 1]; /* how many requests took so many microseconds */
static char *message, *received;
static int size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void send_message(struct connection *connection) {
    /* one message is far below any socket buffer: a short send here is a failure */
    connection->sent_at = now_ns();
    connection->missing = size;
    if (send(connection->fd, message, size, MSG_NOSIGNAL) != size)
        fail("send");
}

static void open_connection(struct connection *connection, int port, int epoll) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        fail("epoll_ctl");
}

static int receive(struct connection *connection) { /* true when the whole echo is back */
    ssize_t count = recv(connection->fd, received, size, 0);
    if (count == 0) {
        fprintf(stderr, "the server closed a connection\n");
        exit(1);
    }
    if (count < 0) {
        if (errno != EAGAIN)
            fail("recv");
        return 0;
    }
    connection->missing -= count;
    return connection->missing <= 0;
}

static int percentile(long requests, double share) {
    long below = 0;
    for (int us = 0; us <= SLOWEST_US; us++) {
        below += latencies[us];
        if (below >= requests * share)
            return us;
    }
    return SLOWEST_US;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: demo_load PORT CONNECTIONS SIZE SECONDS\n");
        return 2;
    }
    int count = atoi(argv[2]), epoll = epoll_create1(EPOLL_CLOEXEC);
    size = atoi(argv[3]);
    message = malloc(size);
    received = malloc(size);
    memset(message, 'x', size);
    struct connection *connections = calloc(count, sizeof *connections);
    struct epoll_event events[256];
    for (int i = 0; i < count; i++)
        open_connection(&connections[i], atoi(argv[1]), epoll);
    for (int i = 0; i < count; i++)
        send_message(&connections[i]);

    int64_t start = now_ns() + WARM_UP_NS, end = start + (int64_t)(atof(argv[4]) * 1e9), now;
    long requests = 0;
    while ((now = now_ns()) < end) {
        int ready = epoll_wait(epoll, events, 256, 5000);
        if (ready == 0) {
            fprintf(stderr, "no answer for five seconds\n");
            return 1;
        }
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!receive(connection))
                continue;
            int64_t took = (now_ns() - connection->sent_at) / 1000;
            if (now >= start) {
                latencies[took < SLOWEST_US ? took : SLOWEST_US]++;
                requests++;
            }
            send_message(connection);
        }
    }
    printf("%ld %.6f %d %d\n", requests, (now - start) / 1e9, percentile(requests, 0.5), percentile(requests, 0.99));
    return 0;
}
