/* A preloaded syscall() under which the kernel refuses to register a ring of provided buffers: the first time, the second
 * time, ... as the digits in REFUSED say; and to be entered while `refuse_entering` is set. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int refuse_entering;

long syscall(long number, ...) {
    static long (*real)(long, ...);
    static int calls;
    const char *refused = getenv("REFUSED");
    long arg[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) arg[i] = va_arg(list, long);
    va_end(list);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == 427 && arg[1] == 22 && refused && strchr(refused, '0' + ++calls)) {
        errno = ENOMEM;
        return -1;
    }
    if (number == 426 && refuse_entering) {
        errno = EAGAIN;
        return -1;
    }
    return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
