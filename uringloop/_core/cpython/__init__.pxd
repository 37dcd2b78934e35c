# Code that relies on the interpreter beyond CPython's documented C API, and the canaries for all that the core relies on.
