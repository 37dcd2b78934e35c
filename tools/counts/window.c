/* Loaded before all else into what runs under callgrind: begins and ends what is counted, and is the clock and malloc.
 *
 * The clock of timers goes on by a microsecond whenever it is read, so that nothing a program decides by it depends on
 * how busy the machine is. Nobody may sleep until a time by it: the kernel has its own.
 *
 * This malloc takes the same instructions whatever was freed before: it has a list of free blocks for each size, and
 * gives no memory back. The C library's searches for a block above 1 KB, which takes an echo up to 6 % longer after one
 * import more. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

static int64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *time) {
    int64_t now;
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
    now = __atomic_add_fetch(&now_ns, 1000, __ATOMIC_RELAXED);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

__attribute__((constructor)) static void begin_now(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    now_ns = (int64_t)time.tv_sec * 1000000000;
}

/* Instrumented from the first window on: what comes before, imports above all, runs faster without. */
void window_begin(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void window_end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }

/* Before each block: whose list it goes back to, and where it began. Sizes are 16, 32 .. 1024, then four steps to each
 * doubling. */
typedef struct Block {
    uint32_t list;
    uint32_t shifted; /* from where it began to the header, for an alignment */
    struct Block *next;
} Block;

enum { FINE = 64, LISTS = FINE + 4 * 40, CHUNK = 1 << 24 };

static Block *lists[LISTS];
static char *room, *room_end;
static char busy;

static uint32_t list_of(size_t size) {
    unsigned power;
    if (size <= 1024) return size ? (uint32_t)((size - 1) / 16) : 0;
    power = 63 - (unsigned)__builtin_clzl(size - 1);
    return FINE + (power - 10) * 4 + (uint32_t)(((size - 1) >> (power - 2)) & 3);
}

static size_t size_of(uint32_t list) {
    if (list < FINE) return (list + 1) * 16;
    return (size_t)(5 + (list - FINE) % 4) << ((list - FINE) / 4 + 8);
}

void *malloc(size_t size) {
    uint32_t list;
    size_t whole;
    Block *block;
    if (size > (size_t)1 << 40) {
        errno = ENOMEM;
        return NULL;
    }
    list = list_of(size);
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) syscall(SYS_sched_yield);
    if ((block = lists[list])) {
        lists[list] = block->next;
    } else {
        whole = sizeof(Block) + size_of(list);
        if ((size_t)(room_end - room) < whole) {
            size_t more = whole > CHUNK ? whole : CHUNK;
            room = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (room == MAP_FAILED) {
                room = room_end = NULL;
                __atomic_clear(&busy, __ATOMIC_RELEASE);
                errno = ENOMEM;
                return NULL;
            }
            room_end = room + more;
        }
        block = (Block *)room;
        room += whole;
        block->list = list;
        block->shifted = 0;
    }
    __atomic_clear(&busy, __ATOMIC_RELEASE);
    return block + 1;
}

void free(void *memory) {
    Block *block = (Block *)memory - 1;
    if (!memory) return;
    block = (Block *)((char *)block - block->shifted);
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) syscall(SYS_sched_yield);
    block->next = lists[block->list];
    lists[block->list] = block;
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

void *calloc(size_t count, size_t size) {
    size_t all;
    void *memory = __builtin_mul_overflow(count, size, &all) ? malloc(SIZE_MAX) : malloc(all);
    return memory ? memset(memory, 0, all) : NULL;
}

size_t malloc_usable_size(void *memory) {
    Block *block = (Block *)memory - 1;
    return memory ? size_of(block->list) - block->shifted : 0;
}

void *realloc(void *memory, size_t size) {
    size_t had = malloc_usable_size(memory);
    void *moved;
    if (memory && size <= had) return memory;
    moved = malloc(size);
    if (moved && memory) {
        memcpy(moved, memory, had);
        free(memory);
    }
    return moved;
}

void *memalign(size_t alignment, size_t size) {
    char *memory = malloc(size + alignment);
    Block *block = (Block *)memory - 1, *shifted;
    if (!memory || (uintptr_t)memory % alignment == 0) return memory;
    memory += alignment - (uintptr_t)memory % alignment;
    shifted = (Block *)memory - 1;
    shifted->list = block->list;
    shifted->shifted = (uint32_t)((char *)shifted - (char *)block);
    return memory;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
