# Declarations of own_context.h: a handle's own context, which is copied late.
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

cdef extern from "cpython/own_context.h":
    bint ur_contexts_are_as_known() except -1
    int ur_lend_contexts() except -1
    PyObject *ur_context_copy(uint8_t *kind) except NULL
    int ur_context_enter(PyObject **own, uint8_t *kind) noexcept  # raises on the callback's behalf
    void ur_context_leave(PyObject **own, uint8_t *kind) noexcept
    int ur_context_show(PyObject **own, uint8_t *kind) except -1
