# How the core's objects are made, guarded against other threads, counted, and ended.
