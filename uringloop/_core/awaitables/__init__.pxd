# What a task awaits until the kernel has done something: sock_* calls, file operations, child processes, name lookups.
