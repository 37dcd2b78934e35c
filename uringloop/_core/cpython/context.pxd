# context_enter and context_exit: enter and leave the contextvars.Context of a protocol, by a borrowed reference. This is
# documented API, but Cython's own declaration takes an object, and would count its references.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int context_enter "PyContext_Enter"(PyObject *context) except -1
    int context_enter_unchecked "PyContext_Enter"(PyObject *context) noexcept  # -1: the exception is set
    int context_exit "PyContext_Exit"(PyObject *context) noexcept  # leaves a raised exception as it is
