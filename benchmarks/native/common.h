/* What the C programs share: the clock, pinning, listening, the busy work. Header only, so that each is one `cc`. */
#ifndef BENCHMARK_COMMON_H
#define BENCHMARK_COMMON_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static inline void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t)) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* The processor time of another process, all its threads, to the nanosecond (the kernel's CPUCLOCK_SCHED). */
static inline clockid_t process_clock(pid_t pid) { return (clockid_t)((~(unsigned)pid << 3) | 2); }

static inline void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (core >= 0 && sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static inline void raise_file_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Some machines choose BBR, which paces a connection by what it has measured of the way: on the loopback that is chance,
 * and one sender was twice as fast in one run as in the next. Accepted sockets have it from the listening one. A server
 * that is compared with ones that leave this to the machine, as users' do, is started with BENCHMARK_PACED. */
static inline void do_not_pace(int fd)
{
    if (!getenv("BENCHMARK_PACED")) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* The address of a TCP or UDP port on 127.0.0.1, or of a Unix socket's path. */
static inline socklen_t address_of(const char *family, const char *where, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (strcmp(family, "unix") == 0) {
        struct sockaddr_un *un = (struct sockaddr_un *)out;
        un->sun_family = AF_UNIX;
        strncpy(un->sun_path, where, sizeof un->sun_path - 1);
        return sizeof *un;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->sin_port = htons((uint16_t)atoi(where));
    return sizeof *in;
}

/* A bound (and listening) socket; prints its port, or 0 for a Unix one, as the line the parent waits for. */
static inline int listen_and_tell(const char *family, const char *where)
{
    struct sockaddr_storage address;
    socklen_t length = address_of(family, where, &address);
    int udp = strcmp(family, "udp") == 0, one = 1;
    int fd = socket(address.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, length)) die("bind");
    if (!udp) do_not_pace(fd);
    if (!udp && listen(fd, 4096)) die("listen");
    length = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &length);
    printf("%d\n", address.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&address)->sin_port) : 0);
    fflush(stdout);
    return fd;
}

/* The stand-in for an application's work on one message. */
static inline void work_for(uint64_t ns)
{
    if (!ns) return;
    uint64_t until = now_ns() + ns;
    while (now_ns() < until) continue;
}

#endif
