# Making new bytes shorter in place, before any other code has seen them. `_PyBytes_Resize` is documented in spite of its
# name: it frees the bytes, and sets the pointer to NULL, where there is no memory.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject **data, Py_ssize_t size) except -1
