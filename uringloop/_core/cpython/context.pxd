# Entering and leaving the contextvars.Context that a protocol's methods run in, by a borrowed reference. Documented API,
# declared once, since Cython's own declaration takes an object and would count it.
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int context_enter "PyContext_Enter"(PyObject *context) except -1
    int context_enter_unchecked "PyContext_Enter"(PyObject *context) noexcept  # -1: the exception is set
    int context_exit "PyContext_Exit"(PyObject *context) noexcept  # leaves a raised exception as it is
