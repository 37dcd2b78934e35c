# Tools for the core's objects: how they are made, guarded against other threads, counted and destroyed; and its use of malloc.
