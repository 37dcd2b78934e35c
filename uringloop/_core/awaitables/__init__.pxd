# The awaitables for the kernel's work (sock_* calls, file operations, child processes, name lookups), and the coroutine
# protocol that all awaitables of the core share.
