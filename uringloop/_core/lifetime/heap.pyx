# keep_heap: the C library keeps the memory of one turn for the next. A turn receives all messages before it sends their
# answers, so it ends by freeing all of them at once. glibc gives the top of its heap back to the kernel whenever more
# than 128 KB are free there, and the next turn has to fault the same pages in again: five faults for each message of
# 40 KB, which cost more than all the rest. glibc raises that threshold by itself when a program frees a block so large
# that malloc had mapped it separately: to twice the block's size. Most programs do so after a while; a fresh one has not
# done it yet.
import os

cdef extern from * nogil:
    """
    #include <stdlib.h>
    /* Blocks of up to 2 MB come from the heap from now on, and up to 4 MB may be free at its top. No page of the block
       is touched. Has no effect if the user has chosen one of malloc's parameters, nor on other C libraries.
       `volatile`, or the compiler removes both calls. */
    static void ur_free_mapped_block(void) {
        void *volatile block = malloc(2 << 20);
        free(block);
    }
    """
    void ur_free_mapped_block()

cdef bint _done = False


cdef int keep_heap() except -1:
    """Once a process, before its first loop runs, unless the user has asked to leave malloc as it is."""
    global _done
    if _done:
        return 0
    chosen = os.environ.get("URINGLOOP_MALLOC") or "raised"
    if chosen not in ("raised", "unchanged"):
        raise ValueError(f"URINGLOOP_MALLOC is 'raised' (the default) or 'unchanged', not {chosen!r}")
    if chosen == "raised":
        ur_free_mapped_block()
    _done = True
    return 0
