# _PyBytes_Resize: makes new bytes shorter in place, before any other code has seen them. It is documented in spite of its
# name: if there is no memory, it frees the bytes and sets the pointer to NULL.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject **data, Py_ssize_t size) except -1
