/* The client of every benchmark with a server: plain C on epoll, so that it is not what limits a Python server.
 *
 * client -m MODE -f FAMILY -a WHERE [-n connections] [-s size] [-d depth] [-b answers] [-i in flight] [-w warm up] [-t seconds]
 *        [-P server's process] [-C core] [-T] [-W]
 *
 * MODE  echo       every connection keeps `depth` messages on the way (at most `in flight` of all connections), each of
 *                  which has so many `answers`. Without `in flight`, a connection goes on after its first ones when the
 *                  server has answered all connections: some loops accept so slowly under load that otherwise they would be
 *                  measured with a part of the connections
 *       send       writes as fast as the server takes; a message is `size` bytes taken by the kernel
 *       receive    reads as fast as the server writes
 *       broadcast  one byte on the first connection, then `size` bytes come back on each
 *       connect    connect, one echo, close, again
 *       idle       connects, prints how many, waits for the end of standard input
 * -T speaks TLS. -W speaks WebSocket: a message is a binary frame of `size` bytes of data, masked with zeros, and so is its answer.
 * Prints one line of JSON. The server's processor time is read by the client at both ends of the window, from the
 * kernel's clock of that process, so nothing between window and figure is left to chance.
 */
#include "common.h"
#include "histogram.h"
#include "tls.h"
#include <sys/epoll.h>

enum { EVENTS = 512, CHUNK = 1 << 20, MAX_DEPTH = 1024, LOST_AFTER = 200000000, START_WITHIN = 10 };
enum mode { ECHO, SEND, RECEIVE, BROADCAST, CONNECT, IDLE_MODE };

struct connection {
    int fd, number, wants_out, shaking, flying;  /* flying: messages on the way */
    int answered;                                /* the server has answered a message */
    void *ssl;
    uint64_t to_send, sent, got;                 /* bytes */
    uint64_t *times;                             /* when each flying message was queued, a ring of `depth` */
    unsigned first_time;
    uint64_t last_seen;
};

static enum mode mode;
static const char *family = "tcp", *where = "";
static int count = 1, depth = 1, answers = 1, in_flight, use_tls, use_websocket, is_udp, poller;
static uint64_t size = 64, sent_size;               /* a message as it comes back, and as it is sent */
static double warm_up = 0.1, seconds = 0.3;
static pid_t server;
static struct connection *all;
static char *payload, *expected, *chunk;
static int *waiting, waiting_head, waiting_tail; /* connections that may send, when in_flight limits them */
static int flying_total, round_left, answered;   /* answered: so many connections */
static uint64_t messages, bytes, lost, failures, round_start;
static int verified = 1, measuring;
static unsigned attempts;

static void begin(struct connection *c, uint64_t now);
static void shake(struct connection *c);

/* The opening handshake. The server's answer isn't looked at any further: without an upgrade, what follows would not be verified. */
static void upgrade(int fd)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    char tail[4] = "";
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != sizeof request - 1) die("upgrade");
    while (memcmp(tail, "\r\n\r\n", 4)) {
        memmove(tail, tail + 1, 3);
        if (recv(fd, tail + 3, 1, 0) != 1) die("upgrade");
    }
}

static void open_connection(struct connection *c, int blocking)
{
    struct sockaddr_storage address;
    socklen_t length = address_of(family, where, &address);
    int one = 1, kind = (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
    c->fd = socket(address.ss_family, kind | (blocking ? 0 : SOCK_NONBLOCK), 0);
    if (c->fd < 0) die("socket");
    if (address.ss_family == AF_INET) {
        /* Many loopback addresses, because one has only 28,000 ports. */
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002 + attempts++ % 250)};
        setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (!is_udp) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (!is_udp) do_not_pace(c->fd);
        if (bind(c->fd, (struct sockaddr *)&from, sizeof from)) die("bind");
    }
    int connected = connect(c->fd, (struct sockaddr *)&address, length) == 0;
    if (!connected && errno != EINPROGRESS) die("connect");
    if (use_websocket) upgrade(c->fd);
    if (blocking) fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->to_send = c->sent = c->got = 0;
    c->flying = 0;
    c->wants_out = !connected;
    if (use_tls) {
        c->ssl = tls.new(tls.context);
        tls.set_fd(c->ssl, c->fd);
        c->shaking = 1;
    }
    struct epoll_event event = {.events = EPOLLIN | (c->wants_out ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event)) die("epoll_ctl");
    if (connected && mode == CONNECT) use_tls ? shake(c) : begin(c, now_ns());
}

static void want_out(struct connection *c, int wanted)
{
    if (c->wants_out == wanted) return;
    c->wants_out = wanted;
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void close_connection(struct connection *c)
{
    if (c->ssl) {
        tls.shutdown(c->ssl);
        tls.free(c->ssl);
        c->ssl = NULL;
    }
    close(c->fd);
}

static void broken(struct connection *c, const char *what)
{
    if (mode == CONNECT && ++failures < 1000) {
        close_connection(c);
        open_connection(c, 0);
        return;
    }
    fprintf(stderr, "connection %d: %s: %s\n", c->number, what, strerror(errno));
    exit(1);
}

/* Send what is queued; the payload is periodic, so any offset of the stream can be sent and checked. */
static void push(struct connection *c)
{
    while (c->to_send) {
        size_t part = c->to_send < CHUNK ? c->to_send : CHUNK;
        if (is_udp) part = size;
        char *from = payload + c->sent % sent_size;
        ssize_t n = c->ssl ? tls_result(c->ssl, tls.write(c->ssl, from, (int)part)) : send(c->fd, from, part, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) { want_out(c, 1); return; }
        if (n < 0) { broken(c, "send"); return; }
        c->sent += (uint64_t)n;
        c->to_send -= (uint64_t)n;
        if (mode == SEND) {
            bytes += (uint64_t)n;
            messages = bytes / size;
            c->to_send = UINT64_MAX;
            want_out(c, 1); /* there is always more to send */
            if ((uint64_t)n < part) return;
            if (c->sent > 64u << 20) { c->sent %= size; return; } /* let the clock be looked at */
        }
    }
    want_out(c, 0);
}

static void queue_message(struct connection *c, uint64_t now)
{
    c->times[(c->first_time + (unsigned)c->flying) % (unsigned)depth] = now;
    c->flying++;
    flying_total++;
    c->to_send += sent_size;
}

static void wait_in_line(struct connection *c)
{
    waiting[waiting_tail++ % (count * depth + 1)] = c->number;
}

/* As many messages as may be on the way, from the connections whose turn it is. */
static void fill(uint64_t now)
{
    while (flying_total < in_flight && waiting_head != waiting_tail) {
        struct connection *c = &all[waiting[waiting_head++ % (count * depth + 1)]];
        queue_message(c, now);
        push(c);
    }
}

/* The server has answered all connections: load begins. */
static void start_all(uint64_t now)
{
    for (int i = 0; i < count; i++) {
        while (all[i].flying < depth) queue_message(&all[i], now);
        push(&all[i]);
    }
}

static void completed(struct connection *c, uint64_t now)
{
    histogram_add(now - c->times[c->first_time]);
    c->first_time = (c->first_time + 1) % (unsigned)depth;
    c->flying--;
    flying_total--;
    messages += (uint64_t)answers;
    if (in_flight) wait_in_line(c);
    else if (is_udp || answered == count) queue_message(c, now);
    else if (!c->answered) {
        c->answered = 1;
        if (++answered == count) start_all(now);
    }
}

static void start_round(uint64_t now)
{
    round_start = now;
    round_left = count;
    if (send(all[0].fd, payload, 1, MSG_NOSIGNAL) != 1) die("trigger");
}

/* Bytes of the broadcast have come: the round is over when every connection has all of it. */
static void broadcast_part(struct connection *c, uint64_t before, uint64_t now)
{
    if (before / size == c->got / size) return;
    messages++;
    histogram_add(now - round_start);
    if (--round_left == 0) start_round(now);
}

static void one_more_connection(struct connection *c, uint64_t now)
{
    if (c->got < size) return;
    histogram_add(now - c->times[0]);
    messages++;
    close_connection(c);
    c->times[0] = now_ns();
    open_connection(c, 0);
}

/* Whether the connection is still the same one and may have more to read. */
static int take(struct connection *c, ssize_t n)
{
    uint64_t now = now_ns(), before = c->got;
    c->last_seen = now;
    if (!measuring && mode != BROADCAST && mode != RECEIVE && memcmp(chunk, expected + before % size, (size_t)n)) verified = 0;
    c->got += (uint64_t)n;
    bytes += (uint64_t)n;
    if (mode == ECHO) {
        uint64_t all_of_it = size * (uint64_t)answers;
        for (uint64_t i = before / all_of_it; i < c->got / all_of_it; i++)
            if (c->flying) completed(c, now);
        if (in_flight) fill(now);
        else push(c);
    } else if (mode == RECEIVE) messages = bytes / size;
    else if (mode == BROADCAST) broadcast_part(c, before, now);
    else if (mode == CONNECT) { one_more_connection(c, now); return c->got != 0; }
    return 1;
}

static void pull(struct connection *c)
{
    for (;;) {
        size_t room = CHUNK;
        ssize_t n = c->ssl ? tls_result(c->ssl, tls.read(c->ssl, chunk, (int)room)) : recv(c->fd, chunk, room, 0);
        if (n < 0 && errno == EAGAIN) return;
        if (is_udp && n < 0) return;
        if (n <= 0) { broken(c, n ? "recv" : "closed by the server"); return; }
        if (!take(c, n) || (!c->ssl && !is_udp && (size_t)n < room)) return;
    }
}

/* What a connection does first, when it is connected (and its handshake is done). */
static void begin(struct connection *c, uint64_t now)
{
    if (mode == ECHO && in_flight) {
        for (int i = 0; i < depth; i++) wait_in_line(c);
        fill(now);
    } else if (mode == ECHO) {
        for (int i = 0; i < depth; i++) queue_message(c, now);
        push(c);
    } else if (mode == SEND) {
        c->to_send = UINT64_MAX;
        push(c);
    } else if (mode == CONNECT) {
        c->to_send = size;
        push(c);
    } else if (mode == RECEIVE && send(c->fd, payload, 1, MSG_NOSIGNAL) != 1) die("start");
}

static void shake(struct connection *c)
{
    int n = tls.connect(c->ssl);
    if (n == 1) {
        c->shaking = 0;
        want_out(c, 0);
        begin(c, now_ns());
    } else if (tls_result(c->ssl, n) < 0 && errno == EAGAIN) {
        want_out(c, tls.get_error(c->ssl, n) == TLS_WANT_WRITE);
    } else broken(c, "handshake");
}

static void event_for(struct connection *c, uint32_t events)
{
    if (c->shaking) { shake(c); return; }
    if (events & EPOLLOUT) {
        if (mode == CONNECT && c->sent == 0 && c->to_send == 0) begin(c, now_ns());
        else push(c);
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) pull(c);
}

/* UDP may lose datagrams: what has not come back in time is counted as lost and sent again. */
static void resend_lost(uint64_t now)
{
    for (int i = 0; i < count; i++) {
        struct connection *c = &all[i];
        if (now < c->last_seen + LOST_AFTER || !c->flying) continue; /* it may have been seen after `now` was read */
        lost += (uint64_t)c->flying;
        flying_total -= c->flying;
        c->flying = 0;
        c->to_send = 0;
        c->last_seen = now;
        for (int k = 0; k < depth; k++) queue_message(c, now);
        push(c);
    }
}

static void turn(uint64_t until)
{
    struct epoll_event events[EVENTS];
    uint64_t next_look = now_ns() + LOST_AFTER;
    for (;;) {
        uint64_t now = now_ns();
        if (now >= until) return;
        int left = (int)((until - now) / 1000000) + 1;
        int ready = epoll_wait(poller, events, EVENTS, is_udp && left > 50 ? 50 : left);
        for (int i = 0; i < ready; i++) event_for(events[i].data.ptr, events[i].events);
        if (is_udp && now > next_look) { resend_lost(now); next_look = now + LOST_AFTER / 2; }
    }
}

/* A message that was on the way during the whole window counts as having taken as long as it has so far. */
static void count_unanswered(uint64_t start, uint64_t now)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < all[i].flying; k++) {
            uint64_t sent = all[i].times[(all[i].first_time + (unsigned)k) % (unsigned)depth];
            if (sent < start) histogram_add(now - sent);
        }
}

static void measure(void)
{
    uint64_t limit = now_ns() + START_WITHIN * 1000000000ull;
    while (mode == ECHO && !in_flight && !is_udp && answered < count) {
        if (now_ns() > limit) { fprintf(stderr, "the server answered %d of %d connections\n", answered, count); exit(1); }
        turn(now_ns() + 1000000);
    }
    turn(now_ns() + (uint64_t)(warm_up * 1e9));
    memset(histogram, 0, sizeof histogram);
    messages = bytes = lost = histogram_total = 0;
    measuring = 1;
    uint64_t cpu = server ? clock_ns(process_clock(server)) : 0, own = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t start = now_ns();
    turn(start + (uint64_t)(seconds * 1e9));
    double elapsed = (double)(now_ns() - start) * 1e-9;
    if (mode == ECHO) count_unanswered(start, now_ns());
    double server_cpu = server ? (double)(clock_ns(process_clock(server)) - cpu) * 1e-9 : 0;
    double client_cpu = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own) * 1e-9;
    printf("{\"messages\": %llu, \"bytes\": %llu, \"seconds\": %.9f, \"server_cpu\": %.9f, \"client_cpu\": %.9f, ",
           (unsigned long long)messages, (unsigned long long)bytes, elapsed, server_cpu, client_cpu);
    printf("\"p50\": %.9f, \"p99\": %.9f, \"lost\": %llu, \"failures\": %llu, \"verified\": %d}\n", histogram_seconds(0.50),
           histogram_seconds(0.99), (unsigned long long)lost, (unsigned long long)failures, verified);
}

static void options(int argc, char **argv)
{
    static const char *modes[] = {"echo", "send", "receive", "broadcast", "connect", "idle"};
    int option, core = -1;
    while ((option = getopt(argc, argv, "m:f:a:n:s:d:b:i:w:t:P:C:TW")) != -1) {
        switch (option) {
        case 'm': for (mode = ECHO; mode < IDLE_MODE && strcmp(modes[mode], optarg); mode++) continue; break;
        case 'f': family = optarg; break;
        case 'a': where = optarg; break;
        case 'n': count = atoi(optarg); break;
        case 's': size = strtoull(optarg, NULL, 10); break;
        case 'd': depth = atoi(optarg); break;
        case 'b': answers = atoi(optarg); break;
        case 'i': in_flight = atoi(optarg); break;
        case 'w': warm_up = atof(optarg); break;
        case 't': seconds = atof(optarg); break;
        case 'P': server = atoi(optarg); break;
        case 'C': core = atoi(optarg); break;
        case 'T': use_tls = 1; tls_load(); break;
        case 'W': use_websocket = 1; break;
        default: exit(2);
        }
    }
    if (count < 1 || size < 1 || depth < 1 || answers < 1 || depth > MAX_DEPTH
        || (use_websocket && (mode != ECHO || size < 126 || size > 65535))) { fprintf(stderr, "bad options\n"); exit(2); }
    is_udp = strcmp(family, "udp") == 0;
    pin(core);
}

/* Messages one after the other, each of which begins with the same head. */
static char *stream(const char *head, size_t head_size)
{
    uint64_t period = head_size + size;
    char *made = malloc(period + CHUNK);
    for (uint64_t i = 0; i < period + CHUNK; i++) {
        uint64_t at = i % period;
        made[i] = at < head_size ? head[at] : (char)((at - head_size) * 31 + (at - head_size) / 251);
    }
    return made;
}

static void make_messages(void)
{
    char high = (char)(size >> 8), low = (char)size;
    char ours[] = {(char)0x82, (char)(0x80 | 126), high, low, 0, 0, 0, 0}, theirs[] = {(char)0x82, 126, high, low};
    size_t our_head = use_websocket ? sizeof ours : 0, their_head = use_websocket ? sizeof theirs : 0;
    payload = stream(ours, our_head);
    expected = stream(theirs, their_head);
    sent_size = size + our_head;
    size += their_head;
}

int main(int argc, char **argv)
{
    options(argc, argv);
    raise_file_limit();
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(EPOLL_CLOEXEC);
    make_messages();
    chunk = malloc(CHUNK);
    waiting = calloc((size_t)(count * depth) + 1, sizeof *waiting);
    all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i].number = i;
        all[i].times = calloc((size_t)depth, sizeof(uint64_t));
        all[i].times[0] = now_ns();
        open_connection(&all[i], mode != CONNECT);
        if (use_tls && mode != CONNECT) shake(&all[i]);
    }
    if (mode == IDLE_MODE) {
        printf("{\"connections\": %d}\n", count);
        fflush(stdout);
        return getchar() != EOF;
    }
    for (int i = 0; i < count && mode != CONNECT; i++)
        if (!use_tls) begin(&all[i], now_ns());
    if (mode == BROADCAST) start_round(now_ns());
    measure();
    return 0;
}
