# What own_context.h has for handles: a context of their own, copied late.
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

cdef extern from "cpython/own_context.h":
    bint ur_contexts_are_as_known() except -1
    int ur_lend_contexts() except -1
    PyObject *ur_context_copy(uint8_t *kind) except NULL
    int ur_context_enter(PyObject **own, uint8_t *kind) noexcept  # what it raises is as if the callback had
    void ur_context_leave(PyObject **own, uint8_t *kind) noexcept
    int ur_context_show(PyObject **own, uint8_t *kind) except -1
