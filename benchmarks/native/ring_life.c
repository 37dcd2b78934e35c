/* What a ring costs before and after its use: set up as a loop's ring is, mapped, entered once, unmapped and closed.
 * usage: ring_life SECONDS      prints the median of the seconds that one takes
 */
#include "common.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { ENTRIES = 256, COMPLETIONS = 4096, MOST = 1 << 20 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *map(int fd, size_t size, off_t offset)
{
    void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    if (area == MAP_FAILED) die("mmap");
    return area;
}

static void live(void)
{
    struct io_uring_params p = {.cq_entries = COMPLETIONS};
    p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    int fd = (int)syscall(__NR_io_uring_setup, ENTRIES, &p);
    if (fd < 0) die("io_uring_setup");
    size_t rings = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t array = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    if (array > rings) rings = array;
    void *area = map(fd, rings, IORING_OFF_SQ_RING);
    void *entries = map(fd, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    syscall(__NR_io_uring_enter, fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    munmap(entries, p.sq_entries * sizeof(struct io_uring_sqe));
    munmap(area, rings);
    close(fd);
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

int main(int count, char **arguments)
{
    static double found[MOST];
    int lives = 0;
    double end = now() + (count > 1 ? atof(arguments[1]) : 0.3);
    while (lives < MOST && now() < end) {
        double begun = now();
        live();
        found[lives++] = now() - begun;
    }
    qsort(found, (size_t)lives, sizeof *found, compare);
    printf("%.9f\n", found[lives / 2]);
    return 0;
}
