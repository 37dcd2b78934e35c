from cpython.object cimport PyObject

cdef int sort_named(PyObject **values, PyObject *kwnames, PyObject **sorted) noexcept
