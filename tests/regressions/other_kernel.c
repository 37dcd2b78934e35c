/* A preloaded syscall() that counts the slots which threads have for rings (IORING_REGISTER_RING_FDS) in `slots`, and, as
 * KERNEL names them: "no slots" gives out none, "no probe" does not know IORING_REGISTER_PROBE (as a kernel before 5.6,
 * so that later operations are not offered either). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { IO_URING_REGISTER = 427, REGISTER_PROBE = 8, REGISTER_RING_FDS = 20, UNREGISTER_RING_FDS = 21 };

int slots, most_slots;

long syscall(long number, ...) {
    static long (*real)(long, ...);
    const char *kernel = getenv("KERNEL");
    long arg[6], answer;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) arg[i] = va_arg(list, long);
    va_end(list);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == IO_URING_REGISTER && kernel
        && ((arg[1] == REGISTER_RING_FDS && strstr(kernel, "no slots"))
            || (arg[1] == REGISTER_PROBE && strstr(kernel, "no probe")))) {
        errno = EINVAL;
        return -1;
    }
    answer = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
    if (number == IO_URING_REGISTER && arg[1] == REGISTER_RING_FDS && answer == 1) {
        int now = __atomic_add_fetch(&slots, 1, __ATOMIC_SEQ_CST);
        if (now > most_slots) most_slots = now;
    }
    if (number == IO_URING_REGISTER && arg[1] == UNREGISTER_RING_FDS && answer == 1)
        __atomic_sub_fetch(&slots, 1, __ATOMIC_SEQ_CST);
    return answer;
}
